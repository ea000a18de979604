"""Writes the C source of mgpu_rt._runtime, through which a runtime in Python handles a program's
calls.

    python -m mgpu_rt.runtime._build OUT.c

The C source has three functions for each function of csrc/abi.def. The function with the prefix
`on_` is Python code, declared for cffi. The function without a prefix calls the library's own
function. host.py replaces the library's function by the function with the prefix `enter_`, which
calls the Python code. If a method calls the function that it overrides, `enter_` passes the call to
the library, so the method does not recurse.

Python handles a method's exception (adapters.py). The handler may also fail, for lack of memory or
stack. If the handler fails, cffi returns LOST. For a void function of the ABI, cffi returns 0,
because the method's adapter returns 1 on success. After a failure of the handler, `enter_` ends the
program, which would otherwise continue without the call. Inside `with intercept(...)`, the program
continues, and the end of the `with` block raises RuntimeError.

Handles and addresses are declared as integers of a pointer's size, because x86-64 passes integers
and pointers in the same registers. Python therefore gets ints, and cffi creates no objects for
handles and addresses.
"""

from __future__ import annotations

import re
import sys

from cffi import FFI

from mgpu_rt import _abi

_HANDLES = ("hipModule_t", "hipFunction_t", "hipStream_t", "hipEvent_t")
_STRUCTS = "\n".join(
    line
    for line in _abi.TYPES.splitlines()
    if line.startswith(("struct mgpu_memref", "struct mgpu_elapsed"))
)


def _plain(kind: str) -> str:
    """Returns the type that Python gets: text and memrefs keep their types, handles and other
    pointers become integers."""
    kind = kind.strip()
    if kind in _HANDLES or ("*" in kind and "struct" not in kind and kind != "const char *"):
        return "uintptr_t"
    return "uint8_t" if kind == "bool" else kind  # old callers leave garbage in a late bool


class _Function:
    """A function of the ABI, as csrc/abi.def declares it."""

    def __init__(self, function: _abi.Function) -> None:
        self.name, self.result = function.name, _plain(function.result)
        listed = [] if function.params == "void" else function.params.split(",")
        pairs = [re.fullmatch(r"\s*(.*?)(\w+)", parameter) for parameter in listed]
        given = [(_plain(pair[1]), pair[2]) for pair in pairs if pair]
        self.params = ", ".join(f"{kind} {name}" for kind, name in given) or "void"
        self.kinds = ", ".join(kind for kind, _ in given) or "void"
        self.names = ", ".join(name for _, name in given)

    @property
    def python(self) -> str:
        """Returns the declaration of Python's function."""
        return f"{self.result if self.result != 'void' else 'int'} on_{self.name}({self.params});"

    @property
    def enter(self) -> str:
        """Returns a C function that calls Python's function."""
        kind, back = ("int", "") if self.result == "void" else (self.result, " answer")
        number = "answer"
        if "struct" in kind:
            number += ".error" if kind == "struct mgpu_elapsed" else ".offset"
        lost = f"{number} == (__typeof__({number}))LOST" if back else "!answer"
        return f"""static {self.result} enter_{self.name}({self.params}) {{
    if (inside)
        return {self.name}({self.names});
    inside = 1;
    {kind} answer = on_{self.name}({self.names});
    inside = 0;
    if ({lost})
        lose(&answer, sizeof answer);
    return{back};
}}"""

    @property
    def native(self) -> str:
        """Returns a C function that calls the library's function."""
        call = f"(({self.result} (*)({self.kinds}))own_{self.name})({self.names});"
        back = "" if self.result == "void" else "return "
        return (
            f"static mgpu_rt_function own_{self.name} = (mgpu_rt_function)absent;\n"
            f"static {self.result} {self.name}({self.params}) {{ {back}{call} }}"
        )


#: The functions that receive calls until use_library is called. A program may call a method of a
#: runtime that is not installed.
_ABSENT = """
typedef void (*mgpu_rt_function)(void);
static uintptr_t absent(void) {
    static _Bool said;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fputs("mgpu_rt: a runtime's method was called while it is no program's, and nothing is "
              "done: see mgpu_rt.intercept\\n", stderr);
    return 0;
}
static void absent_report(const char *call, int error) {
    (void)call, (void)error;
    (void)absent();
}
static const char *absent_path(void) { return ""; }
static unsigned long long absent_name(const void *image, char *name, size_t size) {
    (void)image;
    if (size)
        *name = 0;
    return 0;
}
static unsigned absent_flags(void) { return 2; }
"""

_LOST = """
#define LOST INT32_MIN
static int lost, ends_program;
static __thread _Bool inside; /* of a method, on this thread */

static void end_program(int status) {
    fflush(stdout);
    _exit(status);
}
/* glibc's exit bears being called by one of its handlers: it goes on with those that are left. */
static int status_at_end;
static void replace_status(int status, void *nothing) {
    (void)nothing;
    if (status == 0)
        exit(status_at_end);
}
static void change_status(int status) {
    if (status_at_end == 0 && status != 0)
        on_exit(replace_status, NULL);
    status_at_end = status;
}
static void say_lost(void) {
    fputs("mgpu_rt: a method of a runtime in Python has failed, and Python could not say how: "
          "it has no memory, or no depth of calls left\\n", stderr);
}
static void lose(void *value, size_t size) {
    say_lost();
    if (ends_program)
        end_program(1);
    lost = 1;
    memset(value, 0, size);
}
static int on_end(void);
static void enter_end(void) {
    if (!on_end()) {
        say_lost();
        change_status(1);
    }
}
static int on_out_of_memory(int device, size_t size);
static void enter_out_of_memory(int device, size_t size) {
    const _Bool before = inside; /* of the method that allocates */
    inside = 1;
    int answer = on_out_of_memory(device, size);
    inside = before;
    if (!answer)
        lose(&answer, sizeof answer);
}
"""

_SOURCE = """
static mgpu_rt_function (*find)(const char *);
static int (*set_override)(const char *, mgpu_rt_function);
static void (*report_failure)(const char *, int) = absent_report;
static const char *(*path_of_hip)(void) = absent_path;
static unsigned long long (*name_of_image)(const void *, char *, size_t) = absent_name;
static unsigned (*flags_of_events)(void) = absent_flags;

static const struct {{
    const char *name;
    mgpu_rt_function *own, callback;
}} functions[] = {{
{rows}
}};
enum {{ FUNCTIONS = sizeof functions / sizeof *functions }};

static void use_library(uintptr_t native, uintptr_t intercept, uintptr_t report_,
                        uintptr_t path, uintptr_t image_name_, uintptr_t event_flags_) {{
    find = (mgpu_rt_function (*)(const char *))native;
    set_override = (int (*)(const char *, mgpu_rt_function))intercept;
    report_failure = (void (*)(const char *, int))report_;
    path_of_hip = (const char *(*)(void))path;
    name_of_image = (unsigned long long (*)(const void *, char *, size_t))image_name_;
    flags_of_events = (unsigned (*)(void))event_flags_;
    for (int i = 0; i < FUNCTIONS; i++)
        *functions[i].own = find(functions[i].name);
}}
static void override(const char *name, _Bool on) {{
    if (!set_override)
        return;
    if (strcmp(name, "end") == 0)
        set_override(name, on ? enter_end : 0);
    if (strcmp(name, "out_of_memory") == 0)
        set_override(name, on ? (mgpu_rt_function)enter_out_of_memory : 0);
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(name, functions[i].name) == 0)
            set_override(name, on ? functions[i].callback : 0);
}}
static void report(const char *call, int error) {{ report_failure(call, error); }}
/* HIP's questions that a cache asks at each hit, 0.2 µs instead of ctypes' 1.5. `find`, if it is
 * not 0, looks a handle up where the question would read what a dead one points to. */
static int ask_handle(uintptr_t find, uintptr_t query, uintptr_t handle) {{
    int device, error = find ? ((int (*)(void *, int *))find)((void *)handle, &device) : 0;
    return error ? error : ((int (*)(void *))query)((void *)handle);
}}
static int ask_flags(uintptr_t find, uintptr_t get_flags, uintptr_t handle) {{
    unsigned flags = 0;
    int device, error = find ? ((int (*)(void *, int *))find)((void *)handle, &device) : 0;
    error = error ? error : ((int (*)(void *, unsigned *))get_flags)((void *)handle, &flags);
    return error ? -error : (int)flags;
}}
static int ask_device(uintptr_t get_device) {{
    int device = 0;
    return ((int (*)(int *))get_device)(&device) == 0 ? device : 0;
}}
static uint64_t ask_number(uintptr_t get_attribute, int attribute, uintptr_t address) {{
    uint64_t number = 0;
    int (*const get)(void *, int, void *) = (int (*)(void *, int, void *))get_attribute;
    return get(&number, attribute, (void *)address) == 0 ? number : 0;
}}
/* The first bytes are compared first: they say that there are as many as there were. */
static int lies_at(uintptr_t address, const char *content, size_t size) {{
    const size_t head = size < 64 ? size : 64;
    return memcmp((const void *)address, content, head) == 0 &&
           memcmp((const void *)address, content, size) == 0;
}}
static const char *hip_path(void) {{ return path_of_hip(); }}
static unsigned event_flags(void) {{ return flags_of_events(); }}
static uint64_t image_name(uintptr_t image, char *name, size_t size) {{
    return name_of_image((const void *)image, name, size);
}}
"""


def make_ffi() -> FFI:
    """Returns the cffi object that builds mgpu_rt._runtime."""
    functions = [_Function(function) for function in _abi.functions()]
    rows = [
        f'    {{"{f.name}", &own_{f.name}, (mgpu_rt_function)enter_{f.name}}},' for f in functions
    ]
    others = ("int on_end(void);", "int on_out_of_memory(int device, size_t size);")
    callbacks = [*others, *(f.python for f in functions)]
    ffi = FFI()
    ffi.cdef(_STRUCTS)
    ffi.cdef('extern "Python" {\n' + "\n".join(callbacks) + "\n}")
    ffi.cdef("\n".join(f"{f.result} {f.name}({f.params});" for f in functions))
    ffi.cdef(
        "#define LOST ...\n"
        "extern int lost, ends_program;"
        "void use_library(uintptr_t native, uintptr_t intercept, uintptr_t report, uintptr_t path,"
        "                 uintptr_t image_name, uintptr_t event_flags);"
        "unsigned event_flags(void);"
        "uint64_t image_name(uintptr_t image, char *name, size_t size);"
        "void override(const char *name, _Bool on);"
        "void report(const char *call, int error);"
        "int lies_at(uintptr_t address, const char *content, size_t size);"
        "const char *hip_path(void);"
        "int ask_handle(uintptr_t find, uintptr_t query, uintptr_t handle);"
        "int ask_flags(uintptr_t find, uintptr_t get_flags, uintptr_t handle);"
        "int ask_device(uintptr_t get_device);"
        "uint64_t ask_number(uintptr_t get_attribute, int attribute, uintptr_t address);"
        "void end_program(int status);"
        "void change_status(int status);"
    )
    ffi.set_source(
        "mgpu_rt._runtime",
        "\n".join(
            [
                "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>",
                "#include <string.h>\n#include <unistd.h>",
                _ABSENT,
                _STRUCTS,
                _LOST,
                *(f"static {line}" for line in callbacks),
                *(f.native for f in functions),
                *(f.enter for f in functions),
                _SOURCE.format(rows="\n".join(rows)),
            ]
        ),
    )
    return ffi


if __name__ == "__main__":
    make_ffi().emit_c_code(sys.argv[1])
