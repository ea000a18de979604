"""Reads the mgpu* ABI from csrc/abi.def, which declares each function once, and generates the
declarations for cffi."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mgpu_rt import _layout

_ROW = (
    r"MGPU_(?:FN\((?P<result>[^,]+), |VOID\()(?P<name>\w+), \((?P<params>.*?)\), "
    r"\(.*\), (?P<first>\d+), (?P<last>\d+), .*\)"
)

HANDLES = {
    "hipModule_t": "ihipModule_t",
    "hipFunction_t": "ihipModuleSymbol_t",
    "hipStream_t": "ihipStream_t",
    "hipEvent_t": "ihipEvent_t",
}

#: The types that the declarations use, for cffi.
TYPES = """
struct mgpu_memref { char *allocated, *aligned; int64_t offset; int64_t sizes_and_strides[]; };
struct mgpu_memref_float { float *allocated, *aligned; int64_t offset, size, stride; };
struct mgpu_elapsed { float milliseconds; int64_t error; };
struct mgpu_memref_int32 { int32_t *allocated, *aligned; int64_t offset, size, stride; };
"""


def _header(name: str) -> str:
    """Returns the declarations of a header without comments and preprocessor lines, for cffi."""
    text = re.sub(r"/\*.*?\*/", "", _layout.table(name), flags=re.DOTALL)
    text = re.sub(r'^(#.*|extern "C" \{|\})$', "", text, flags=re.MULTILINE)
    return text.replace("struct ihipStream_t *", "hipStream_t ")


#: The exported functions that only this package calls (csrc/include/mgpu_rt_private.h).
PRIVATE = """
const char *mgpu_rt_manager(void);
unsigned long long mgpu_rt_image_place(const void *image, char *file, size_t size,
    unsigned long long *hash);
const char *mgpu_rt_hip_path(void);
unsigned mgpu_rt_failures(void);
unsigned long long mgpu_rt_epoch(int device);
"""


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    params: str
    first_llvm: int
    last_llvm: int

    @property
    def prototype(self) -> str:
        space = "" if self.result.endswith("*") else " "
        return f"{self.result}{space}{self.name}({self.params})"


def functions() -> list[Function]:
    return [
        Function(r["name"], r["result"] or "void", r["params"], int(r["first"]), int(r["last"]))
        for r in _layout.rows("abi.def", _ROW)
    ]


def overridable() -> list[Function]:
    """Returns the functions that a runtime in Python may override: all but those that return a
    structure."""
    return [function for function in functions() if not function.result.startswith("struct")]


def cdef(*, plain: bool = False) -> str:
    """Returns the declarations for cffi. If `plain`, handles and untyped pointers are integers:
    x86-64 passes integers and pointers in the same registers."""
    lines = [f"{function.prototype};" for function in functions()]
    text = TYPES + "\n".join(lines) + _header("mgpu_rt.h") + PRIVATE
    if plain:
        handles = "".join(f"typedef uintptr_t {name};\n" for name in HANDLES)
        return handles + re.sub(r"(const )?void \*+", "uintptr_t ", text)
    handles = "".join(f"typedef struct {kind} *{name};\n" for name, kind in HANDLES.items())
    return handles + text
