"""Runs Python's ExecutionEngine: MLIR's JIT, this library and HIP in one interpreter's process.

Debian has no Python bindings of MLIR, and the bindings on PyPI take 480 MB. `make check-jit`
installs the bindings and runs this file; `make test` skips the file if they are missing.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from tests.runtime.programs.test_programs import PRINTED, printed, rounds
from tests.support import lower
from tests.support.child import library
from tests.support.patience import run_process
from tests.support.printing import print_library
from tests.support.programs import Way, run_environment
from tests.support.sources import SOURCES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mlir") is None,
    reason="MLIR's Python bindings are not installed: make check-jit",
)

#: Compiles and runs each program in turn. The last line names the libraries that the process has
#: mapped.
HOST = """
import ctypes, json, sys
from mlir import ir
from mlir.execution_engine import ExecutionEngine
initialize, libraries, *programs = json.loads(sys.argv[1])
for program in programs:
    with ir.Context():
        engine = ExecutionEngine(ir.Module.parse(open(program).read()), shared_libs=libraries)
        if initialize:
            engine.initialize()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup("main"))(None)
        del engine
ctypes.CDLL(None).fflush(None)
code = [line.split()[-1] for line in open("/proc/self/maps") if " r-xp " in line]
print(json.dumps([path.rpartition("/")[2] for path in code]))
"""


def jit(*programs: str, initialize: bool = True, **changes: str) -> tuple[str, list[str], str]:
    """Runs programs in one process; returns their output, the mapped libraries and stderr."""
    compiled = [
        lower.lower_to_llvm_dialect(SOURCES[name], 22, iterations=rounds(name)) for name in programs
    ]
    libraries = [str(library()), str(print_library())]
    words = json.dumps([initialize, libraries, *map(str, compiled)])
    done = run_process(
        [sys.executable, "-c", HOST, words],
        run_environment(Way(library()), "softgpu", 22, "python", **changes),
    )
    assert done.returncode == 0, done.stderr
    *lines, mapped = done.stdout.splitlines(keepends=True)
    return "".join(lines), json.loads(mapped), done.stderr


def count(mapped: list[str], prefix: str) -> int:
    return sum(name.startswith(prefix) for name in mapped)


@pytest.mark.parametrize("program", PRINTED)
def test_engines_print_what_programs_do(program: str) -> None:
    out, mapped, said = jit(program)
    assert (out, said) == (printed(program, 22), "")
    for name in ("libamdhip64", "libamd_comgr.so.2.", "libLLVM-15"):
        assert count(mapped, name) == 1


def test_engines_work_one_after_the_other() -> None:
    """Each program frees its memory, and the next program's images may be at the same addresses
    (trap 1)."""
    programs = ("samename", "globals", "overlap", "globals", "vecadd", "samename")
    out, mapped, said = jit(*programs)
    assert (out, said) == ("".join(printed(program, 22) for program in programs), "")
    assert count(mapped, "libamdhip64") == 1


def test_11_a_missing_initialize_is_named_once() -> None:
    """LLVM 22 loads modules in constructors. Without initialize(), the ExecutionEngine runs no
    constructor."""
    out, _, said = jit("globals", initialize=False)
    assert out == "0\n"
    assert said.count("call initialize() before invoke()") == 1
