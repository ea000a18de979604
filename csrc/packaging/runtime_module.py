"""Writes the C source of mgpu_rt._runtime into the file that its argument names.

csrc/python/runtime.h contains the C code; this file lists the functions of csrc/abi.def with the
types that Python gets. Needs the package mgpu_rt on PYTHONPATH."""

from __future__ import annotations

import re
import sys

from cffi import FFI

from mgpu_rt import _abi

_STRUCTS = "\n".join(
    line for line in _abi.TYPES.splitlines() if line.startswith("struct mgpu_memref")
)

#: The arguments of all functions that launch. `clustered`: `cluster` contains sizes. `capture`:
#: HIP's answer about a capture of the stream, as `ask_capture` returns it, or NOT_ASKED.
_LAUNCH = """
struct launch {
    uintptr_t function; /* or a host symbol */
    intptr_t grid[3], block[3], cluster[3];
    uintptr_t stream, params, extra;
    int32_t shared, capture;
    _Bool clustered, cooperative, symbol;
};
"""


def _plain(kind: str) -> str:
    """Returns the type that Python gets: text and memrefs keep their types, handles and other
    pointers become integers."""
    kind = kind.strip()
    if kind in _abi.HANDLES or ("*" in kind and "struct" not in kind and kind != "const char *"):
        return "uintptr_t"
    return "uint8_t" if kind == "bool" else kind  # old callers leave garbage in a late bool


class _Function:
    def __init__(self, function: _abi.Function) -> None:
        self.name, self.result = function.name, _plain(function.result)
        listed = [] if function.params == "void" else function.params.split(",")
        pairs = [re.fullmatch(r"\s*(.*?)(\w+)", parameter) for parameter in listed]
        given = [(_plain(pair[1]), pair[2]) for pair in pairs if pair]
        self.params = ", ".join(f"{kind} {name}" for kind, name in given) or "void"
        self.names = ", ".join(name for _, name in given)
        self.is_launch = self.name.startswith("mgpuLaunch")

    @property
    def row(self) -> str:
        kind = "LAUNCH" if self.is_launch else "VOID" if self.result == "void" else "FN"
        return f"{kind}({self.result}, {self.name}, ({self.params}), ({self.names}))"

    @property
    def python(self) -> str:
        return f"{self.result if self.result != 'void' else 'int'} on_{self.name}({self.params});"

    @property
    def declarations(self) -> str:
        """Declares the function, the pointer to the library's own, and what replaces it."""
        prototypes = [f"{self.result} {head}{self.name}({self.params});" for head in ("", "enter_")]
        return "\n".join([f"extern mgpu_rt_function own_{self.name};", *prototypes])


_DECLARATIONS = """
typedef void (*mgpu_rt_function)(void);
#define LOST ...
extern int lost, ends_program;
#define NOT_ASKED ...
extern uintptr_t query_capture;
void know(int who, uintptr_t handle, uintptr_t module, const char *content, size_t size,
          const char *name);
int new_knower(void);
void add_launches(void);
void enter_end(void);
uintptr_t note_mgpuModuleLoad(uintptr_t image, size_t size);
uintptr_t note_mgpuModuleLoadJIT(uintptr_t image, int level, size_t size);
uintptr_t note_mgpuModuleGetFunction(uintptr_t module, const char *name);
int lies_at(uintptr_t address, const char *content, size_t size);
void end_program(int status);
void change_status(int status);
"""


def make_ffi() -> FFI:
    functions = [_Function(function) for function in _abi.overridable()]
    callbacks = [
        "int on_end(void);",
        "int on_thread(void);",
        "int on_loaded(uintptr_t module, uintptr_t image);",
        "int on_found(uintptr_t function, uintptr_t module, const char *name);",
        *(function.python for function in functions if not function.is_launch),
    ]
    rows = " \\\n".join(function.row for function in functions)
    ffi = FFI()
    ffi.cdef(_STRUCTS + _LAUNCH)
    ffi.cdef('extern "Python" {\n' + "\n".join(callbacks) + "\n}")
    ffi.cdef(_DECLARATIONS)
    ffi.cdef("\n".join(function.declarations for function in functions))
    head = "#include <stddef.h>\n#include <stdint.h>\n"
    table = f"#define PLAIN_ABI(FN, VOID, LAUNCH) \\\n{rows}\n"
    ffi.set_source("mgpu_rt._runtime", f'{head}{_STRUCTS}{_LAUNCH}{table}#include "runtime.h"\n')
    return ffi


if __name__ == "__main__":
    make_ffi().emit_c_code(sys.argv[1])
