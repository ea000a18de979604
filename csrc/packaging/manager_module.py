"""Writes the C source of mgpu_rt._manager, through which the manager reaches the table that it
shares with the library: `python csrc/packaging/manager_module.py OUT.c`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cffi import FFI

TABLE = Path(__file__).resolve().parents[1] / "runtime" / "manager" / "table.h"


def declarations() -> str:
    """Returns the declarations of table.h, without the preprocessor lines and comments, because
    cffi parses only plain declarations."""
    text = TABLE.read_text(encoding="utf-8").split("/* ---- ")[1].partition("*/")[2]
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def make_ffi() -> FFI:
    """Returns the cffi builder of mgpu_rt._manager."""
    ffi = FFI()
    ffi.cdef("typedef struct { ...; } pthread_mutex_t;")
    ffi.cdef(declarations())
    ffi.cdef("int table_await(struct table *table, uint64_t milliseconds);")
    ffi.cdef("void table_answer(struct table *table); void table_watch(struct table *table);")
    ffi.set_source("mgpu_rt._manager", '#include "manager/table.h"\n')
    return ffi


if __name__ == "__main__":
    make_ffi().emit_c_code(sys.argv[1])
