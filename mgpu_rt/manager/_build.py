"""Writes the C source of mgpu_rt._manager, through which the manager reaches the library.

    python mgpu_rt/manager/_build.py OUT.c

`_manager.abi3.so` is an API-mode cffi module with the functions of csrc/manager/manager.h;
csrc/python.mk compiles the module. The library itself contains no Python code; the library starts
mgpu_rt/manager/_manager.py, which imports `mgpu_rt._manager`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent.parent
MANAGER = ROOT / "csrc" / "manager"


def declarations() -> str:
    """Returns manager.h without its preprocessor lines and comments, because cffi parses only plain
    declarations."""
    text = (MANAGER / "manager.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def make_ffi() -> FFI:
    """Returns the cffi builder of mgpu_rt._manager."""
    ffi = FFI()
    ffi.cdef(declarations())
    ffi.set_source(
        "mgpu_rt._manager",
        '#include "manager.h"\n',
    )
    return ffi


if __name__ == "__main__":
    make_ffi().emit_c_code(sys.argv[1])
