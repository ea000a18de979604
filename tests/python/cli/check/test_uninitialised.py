"""`mgpu-rt check` reports uses of uninitialised values; a variable disables these reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import program
from tests.support.command import NO_FAULT

HERE = Path(__file__).parent
SOURCE = HERE / "uninitialised.mlir"

#: for each use of an undefined value: the role, the user, and the origin
USES = [
    ("branch", "branch", "%x = memref.load %in[%zero]"),
    ("address", "address", "%x = memref.load %in[%i]"),
    ("host", "host", "%x = memref.load %in[%i]"),
    ("copy", "mgpuMemcpy", None),
]


def test_each_use_is_found_once_with_its_origin(tmp_path: Path) -> None:
    text = SOURCE.read_text().splitlines()

    def line(place: str) -> str:
        return text[int(place.removeprefix("uninitialised.mlir:")) - 1]

    done = check("--json", tmp_path / "json", "--", program(SOURCE, lines=True))
    found = json.loads((tmp_path / "json").read_text())["reports"]
    assert done.returncode == 1, done.stderr
    assert {report["kind"] for report in found} == {"uninitialised"}, done.stderr
    used = [(report["use"], report.get("kernel") or report["call"]) for report in found]
    assert used == [(use, who) for use, who, _ in USES]
    for report, (_, who, origin) in zip(found, USES, strict=True):
        if origin is None:
            assert line(report["place"][0]["line"]).endswith("// tile")
            continue
        assert f"// {who}" in line(report["line"]), report
        assert origin in line(report["other"]["line"]), report
    words = r"256 bytes to the host; 128 of them, from 0x\w+ on, hold or derive from values that"
    assert re.search(words, done.stderr)
    stored = line(found[-1]["other"]["line"])
    assert "memref.store %x, %out[%i]" in stored
    assert re.search(r"the launch of tile on stream 1 .* stored the first of them\n", done.stderr)


def test_uninitialised_values_are_left_out_on_request() -> None:
    done = check("--", program(SOURCE), MGPU_RT_CHECK_UNINITIALISED="off")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", NO_FAULT)


#: Copies bytes that nothing wrote to the host; HIP makes copies of up to 64 bytes with the CPU.
SMALL = """
import ctypes
call = ctypes.CDLL(None)
call.mgpuMemAlloc.restype = ctypes.c_void_p
memory = ctypes.c_void_p(call.mgpuMemAlloc(ctypes.c_uint64(4096), None, False))
host = ctypes.create_string_buffer(4096)
if {written}:
    call.mgpuMemcpy(memory, host, ctypes.c_size_t({written}), None)
call.mgpuMemcpy(host, memory, ctypes.c_size_t({bytes}), None)
call.mgpuStreamSynchronize(None)
call.mgpuMemFree(memory, None)
"""


def small(size: int, written: int = 0) -> subprocess.CompletedProcess[str]:
    return check("--", sys.executable, "-c", SMALL.format(bytes=size, written=written))


@pytest.mark.parametrize("size", [1, 64, 65])
def test_a_small_copy_to_the_host_is_a_use(size: int) -> None:
    done = small(size)
    assert done.returncode == 1, done.stderr
    assert f"to the host; {size} of them, from 0x" in done.stderr
    does = "holds or derives" if size == 1 else "hold or derive"
    assert f" on, {does} from values that nothing wrote [" in done.stderr


def test_a_small_copy_of_written_bytes_is_no_fault() -> None:
    assert "; 1 of them, from 0x" in small(64, written=63).stderr
    done = small(64, written=64)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)
