"""`mgpu-rt check` examines each access while other threads allocate and free memory."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.python.cli.check.test_check import HERE, check
from tests.python.runtime.hooked import program
from tests.support.building import ROOT
from tests.support.child import BUILD
from tests.support.command import NO_FAULT
from tests.support.folders import locked

#: Fills memory, and copies the memory to the host.
FILL = """
import ctypes
call = ctypes.CDLL(None)
call.mgpuMemAlloc.restype = ctypes.c_void_p
memory = ctypes.c_void_p(call.mgpuMemAlloc(ctypes.c_uint64(4096), None, False))
call.mgpuMemset32(memory, 7, ctypes.c_size_t(1024), None)
host = ctypes.create_string_buffer(4096)
call.mgpuMemcpy(host, memory, ctypes.c_size_t(4096), None)
call.mgpuStreamSynchronize(None)
assert bytes(host) == b"\\7\\0\\0\\0" * 1024
call.mgpuMemFree(memory, None)
"""


@functools.cache
def changing() -> tuple[str, ...]:
    """Returns the words before a program's, so that the program runs on a device where the map of
    the allocations changes at each access (changing.c)."""
    library = BUILD / "softgpu" / "check" / "changing" / "libhsakmt.so.1"
    with locked(library):
        command = ["make", "-s", "-j2", "-f", "tests/python/cli/check/build.mk"]
        subprocess.run(command, cwd=ROOT, check=True)
    return "sh", "-c", f'LD_LIBRARY_PATH={library.parent}:$LD_LIBRARY_PATH exec "$0" "$@"'


def test_filled_memory_is_initialised() -> None:
    done = check("--", *changing(), sys.executable, "-c", FILL)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)


@pytest.mark.parametrize("name", ["faults", "races", "uninitialised"])
def test_each_fault_is_found(name: str, tmp_path: Path) -> None:
    built = program(HERE / f"{name}.mlir", lines=True)

    def found(*before: str) -> Counter[tuple[str, str]]:
        out = tmp_path / "found.json"
        check("--json", out, "--", *before, built)
        reports = json.loads(out.read_text())["reports"]
        return Counter((report["kind"], report.get("line", "")) for report in reports)

    assert found(*changing()) == found() != Counter()
