"""Writes the C source of mgpu_rt._host, the module that lets the C library call Python.

    python mgpu_rt/build.py OUT.c

`_host.abi3.so` is an API-mode cffi module of `extern "Python"` callbacks, one for each entry of
`struct mgpu_policy` (csrc/runtime/policy.h). The library itself holds nothing of Python's: it finds
`mgpu_rt.host` at its first miss. csrc/host.mk compiles it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "csrc" / "runtime"

CALLBACKS = {
    "module_load": "int {}(const void *image, size_t size, int device, void **module)",
    "module_unload": "int {}(void *module)",
    "function_get": "int {}(void *module, const char *name, void **function)",
    "stream_create": "int {}(int device, void **stream)",
    "stream_destroy": "int {}(void *stream)",
    "memory_alloc": "int {}(int device, size_t bytes, void **ptr)",
    "memory_free": "int {}(void *ptr)",
    "memory_trim": "void {}(int device, size_t excess)",
    "shutdown": "void {}(void)",
}


#: The C pointer in a capsule of Cython's, given the capsule's id(). cffi calls it without the GIL.
CAPSULE = """
static void *mgpu_capsule_pointer(uintptr_t capsule) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *object = (PyObject *)capsule;
    void *pointer = PyCapsule_GetPointer(object, PyCapsule_GetName(object));
    PyGILState_Release(gil);
    return pointer;
}
"""


def policy_declarations() -> str:
    """policy.h without its preprocessor lines and comments: cffi parses plain declarations."""
    text = (RUNTIME / "policy.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def make_ffi() -> FFI:
    """The cffi builder of mgpu_rt._host."""
    ffi = FFI()
    ffi.cdef(policy_declarations())
    prototypes = [text.format(f"mgpu_{name}") for name, text in CALLBACKS.items()]
    ffi.cdef('extern "Python" {\n' + "".join(f"{line};\n" for line in prototypes) + "}")
    ffi.cdef(
        "const struct mgpu_policy *mgpu_policy_table(void);\n"
        "void mgpu_attach(uint64_t attach, const struct mgpu_policy *policy);\n"
        "void *mgpu_capsule_pointer(uintptr_t capsule);"
    )
    fields = "".join(f".{name} = mgpu_{name}, " for name in CALLBACKS)
    ffi.set_source(
        "mgpu_rt._host",
        '#include "policy.h"\n'
        + "".join(f"static {line};\n" for line in prototypes)
        + "static const struct mgpu_policy *mgpu_policy_table(void) {\n"
        f"    static const struct mgpu_policy table = {{{fields}}};\n"
        "    return &table;\n}\n"
        "static void mgpu_attach(uint64_t attach, const struct mgpu_policy *policy) {\n"
        "    ((void (*)(const struct mgpu_policy *))(uintptr_t)attach)(policy);\n}\n" + CAPSULE,
    )
    return ffi


if __name__ == "__main__":
    make_ffi().emit_c_code(sys.argv[1])
