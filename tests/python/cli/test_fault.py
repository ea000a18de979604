"""A memory fault is explained: its block, how far outside the address is, and the last launches."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli import softgpu
from mgpu_rt._cli.stats import faults
from tests.support import command as commands
from tests.support import recorded
from tests.support.child import ROOT
from tests.support.command import invoke

FAR = Path(__file__).with_name("far.mlir")

STEP = 2**38 + 5  # of the thread that stores outside all memory

RAN = re.compile(
    r"""mgpu-rt: address (?P<address>0x\w+): far from every block; the nearest: """
    r"""(?P<distance>[0-9,]+) bytes past the end of a block of 1,024 bytes at 0x\w+
mgpu-rt:   allocated at [0-9.]+ ms by main\+0x\w+ \(far\+0x\w+\)
mgpu-rt:   (not freed|freed at [0-9.]+ ms)
mgpu-rt:   given to fill in stream 1 at [0-9.]+ ms
mgpu-rt: the last launches, newest first, and their blocks:
mgpu-rt:   fill in stream 1 at [0-9.]+ ms(, which had not returned)?
mgpu-rt:     0x\w+: 1,024 bytes from main\+0x\w+ \(far\+0x\w+\)
"""
)


def far(*arguments: object, program: Path = FAR, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a kernel whose second thread stores outside all memory, from a block of 1,024 bytes."""
    env["MGPU_RT_HIP"] = str(softgpu.hip({}))
    return commands.command("run", "--device", "softgpu", *arguments, program, **env)


@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_run_that_a_fault_ends_names_the_block(cache: str, tmp_path: Path) -> None:
    """ROCr tells the recording the address, prints its own line and ends the process as before."""
    trace = tmp_path / "trace.json"
    done = far("--trace", trace, MGPU_RT_CACHE=cache)
    assert done.returncode == -6
    assert "Memory access fault by GPU" in done.stderr
    told = RAN.search(done.stderr)
    assert told, done.stderr
    assert f"on address {told['address']}" in done.stderr
    assert told["distance"] == f"{4 * STEP - 1024:,}"
    # A user may read the address from the driver's line, later.
    asked = invoke("stats", str(trace), "--address", told["address"])
    assert asked.output == told[0].replace("mgpu-rt: ", "")


@pytest.mark.parametrize("variable", ["MGPU_RT_TRACE", "MGPU_RT_STATS"])
def test_stats_explains_the_fault_in_a_recording(variable: str, tmp_path: Path) -> None:
    done = far(**{variable: str(tmp_path / "recording")})
    assert done.returncode == -6 and "mgpu-rt: address" not in done.stderr
    (line,) = re.findall("Memory access fault.* on address (0x[0-9a-f]+)", done.stderr)
    shown = invoke("stats", str(tmp_path / "recording")).stdout
    tables, _, explained = shown.rpartition("\n\n")
    assert "mgpuMemAlloc" in tables
    if variable == "MGPU_RT_TRACE":
        assert explained.startswith(f"address {line}: ")
        assert RAN.fullmatch(re.sub("(?m)^", "mgpu-rt: ", explained[:-1]) + "\n"), explained
    else:
        assert explained.startswith(f"a kernel accessed address {line}, which it may not access: ")


WORKGROUP = "memref<32xf32, #gpu.address_space<workgroup>>"
IN_WORKGROUP = {
    ") kernel {": f") workgroup(%w: {WORKGROUP}) kernel {{",
    "274877906949": "4096",
    "memref.store %c, %m[%i] : memref<256xf32>": f"""memref.store %c, %w[%i] : {WORKGROUP}
      %x = memref.load %w[%t] : {WORKGROUP}
      memref.store %x, %m[%t] : memref<256xf32>""",
}


def test_an_offset_in_workgroup_memory_is_no_address(tmp_path: Path) -> None:
    text = FAR.read_text()
    for old, new in IN_WORKGROUP.items():
        assert old in text
        text = text.replace(old, new)
    (program := tmp_path / "workgroup.mlir").write_text(text)
    done = far("--trace", tmp_path / "trace.json", program=program)
    assert done.returncode == -6
    assert "access outside workgroup memory at 0x4000, 4 bytes" in done.stderr
    assert "mgpu-rt: address" not in done.stderr


ON_HOST = {
    "%m, %t0 = gpu.alloc async [%t] () : memref<256xf32>": """%m = memref.alloc() : memref<256xf32>
    %any = memref.cast %m : memref<256xf32> to memref<*xf32>
    gpu.host_register %any : memref<*xf32>""",
    "[%t0]": "[%t]",
    "%t2 = gpu.dealloc async [%t1] %m : memref<256xf32>": "",
    "[%t2]": "[%t1]",
    "274877906949": "1",
}
REGISTER = "gpu.host_register %any : memref<*xf32>"


@pytest.mark.parametrize("is_late", [False, True])
def test_registered_memory_is_named(is_late: bool, tmp_path: Path) -> None:
    text = FAR.read_text()
    for old, new in ON_HOST.items():
        assert old in text
        text = text.replace(old, new)
    if is_late:
        text = text.replace(REGISTER, f"{REGISTER}\n{REGISTER.replace('register', 'unregister')}")
    (program := tmp_path / "host.mlir").write_text(text)
    done = far("--trace", tmp_path / "t.json", program=program)
    assert done.returncode == -6
    ended = r"unregistered at [0-9.]+ ms" if is_late else "not unregistered"
    late = ", after the unregister" if is_late else ""
    before = ", unregistered before" if is_late else ""
    told = re.search(
        rf"""mgpu-rt: address (0x\w+): 0 bytes into registered memory of 1,024 bytes at \1
mgpu-rt: {re.escape(faults._OTHER_ADDRESS)}
mgpu-rt:   registered at [0-9.]+ ms by main\+0x\w+ \(host\+0x\w+\)
mgpu-rt:   {ended}
mgpu-rt:   given to fill in stream 1 at [0-9.]+ ms{late}
mgpu-rt: the last launches, newest first, and their blocks:
mgpu-rt:   fill in stream 1 at [0-9.]+ ms(, which had not returned)?
mgpu-rt:     \1: 1,024 bytes registered by main\+0x\w+ \(host\+0x\w+\){before}
""",
        done.stderr,
    )
    assert told, done.stderr
    asked = invoke("stats", str(tmp_path / "t.json"), "--address", told[1])
    assert asked.output == told[0].replace("mgpu-rt: ", "")


#: Fills the memory %seen in a kernel, and returns an element of %host.
USES = """%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    memref.store %seven, %seen[%tx] : memref<?xf32>
    gpu.terminator
  }
  %last = arith.subi %n, %c1 : index
  %x = memref.load %host[%last] : memref<?xf32>
  %r = arith.fptosi %x : f32 to i32"""


def test_the_pages_example_of_registered_memory_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs/commands.md").read_text()
    lines = page.partition("**Registered memory.**")[2].split("\n\n")[1]
    text, uses = re.subn("….*…", lambda _: USES, lines.replace("@main()", "@main() -> i32"))
    assert uses == 1
    (program := tmp_path / "page.mlir").write_text(f"{text}\n  return %r : i32\n}}\n")
    done = far(program=program)
    assert done.returncode == 7, done.stderr


# ---- traces of other devices ----


def launch(begin: float, *pointers: int, kernel: str = "k", **args: Any) -> dict[str, Any]:
    given = [hex(pointer) for pointer in pointers]
    return recorded.call("mgpuLaunchKernel", begin, kernel=kernel, stream=1, pointers=given, **args)


def allocation(begin: float, address: int, size: int, place: str = "step+0x4") -> dict[str, Any]:
    return recorded.call("mgpuMemAlloc", begin, bytes=size, address=hex(address), place=place)


def freed(begin: float, address: int) -> dict[str, Any]:
    return recorded.call("mgpuMemFree", begin, address=hex(address))


def registration(begin: float, address: int, size: int, **args: Any) -> dict[str, Any]:
    place = {"bytes": size, "address": hex(address), "place": "start+0x8"}
    return recorded.call("mgpuMemHostRegister", begin, **place, **args)


def explained(events: list[dict[str, Any]], address: int | None = None, lost: int = 0) -> list[str]:
    return faults.explained("t", {"traceEvents": events, "otherData": {"lost": lost}}, address)


A, B = 0x7F0000100000, 0x7F0000200000


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (A, "0 bytes into a block of 1,000 bytes"),
        (A + 999, "999 bytes into a block of 1,000 bytes"),
        (A + 1000, "0 bytes past the end of a block of 1,000 bytes"),
        (A - 8, "8 bytes before a block of 1,000 bytes"),
        (B - 8, "8 bytes before a block of 2,000 bytes"),
        (8, "a null pointer, 8 bytes further"),
        (A - 2**40, "far from every block; the nearest: 1,099,511,627,776 bytes before a block of"),
    ],
)
def test_the_nearest_block_counts(address: int, words: str) -> None:
    lines = explained([allocation(1, A, 1000), allocation(2, B, 2000)], address)
    assert lines[0].startswith(f"address {address:#x}: {words}")


def test_a_page_may_stand_for_an_address_in_it() -> None:
    events = [allocation(1, A, 1000)]
    assert "page" in explained(events, A + 4096)[1]
    assert "page" not in explained(events, A + 4100)[1]
    assert "page" not in explained(events, A + 2**40)[1]


def test_the_newest_block_at_an_address_counts() -> None:
    """The cache gives one address to many allocations. A launch after the free is the fault."""
    events = [
        allocation(1, A, 1000, "old+0x1"),
        launch(2, A, kernel="before"),
        freed(3, A),
        allocation(4, A, 900, "new+0x2"),
        launch(5, A + 16, kernel="writer"),
        freed(6, A),
        launch(7, A, kernel="late"),
    ]
    assert explained(events, A + 5) == [
        f"address {A + 5:#x}: 5 bytes into a block of 900 bytes at {A:#x}",
        "  1 earlier block contained this address",
        "  allocated at 0.003 ms by new+0x2",
        "  freed at 0.005 ms",
        "  given to late in stream 1 at 0.006 ms, after the free",
        "  given to writer in stream 1 at 0.004 ms",
        "the last launches, newest first, and their blocks:",
        "  late in stream 1 at 0.006 ms",
        f"    {A:#x}: 900 bytes from new+0x2, freed before",
        "  writer in stream 1 at 0.004 ms",
        f"    {A + 16:#x}: 900 bytes from new+0x2",
        "  before in stream 1 at 0.001 ms",
        f"    {A:#x}: 1,000 bytes from old+0x1",
    ]


@pytest.mark.parametrize(("address", "may_differ"), [(A, True), (A + 5000, True), (B, False)])
def test_a_trace_without_its_oldest_events_may_lack_a_block(address: int, may_differ: bool) -> None:
    """A block that the program still holds is the newest at its address."""
    events = [allocation(1, A, 1000), freed(2, A), allocation(3, B, 1000)]
    warning = "  the trace lacks the 7 oldest events: an older block may be the one there"
    assert (warning in explained(events, address, lost=7)) is may_differ
    assert warning not in explained(events, address)
    assert warning in explained([], address, lost=7)


def test_a_driver_without_an_address_leaves_the_launches() -> None:
    """NVIDIA's driver reports the error of a kernel at a later call, without the address."""
    error = "hipErrorIllegalAddress"
    events = [
        allocation(1, A, 1000),
        launch(2, A, 0x493E0, kernel="wrong", result="unfinished"),
        recorded.call("mgpuStreamSynchronize", 3, error=error),
        launch(4, A, kernel="refused", error=error),
    ]
    assert explained(events) == [
        f"a kernel accessed wrong memory: mgpuStreamSynchronize reports {error}",
        "the last launches, newest first, and their blocks:",
        "  wrong in stream 1 at 0.001 ms, which had not returned",
        f"    {A:#x}: 1,000 bytes from step+0x4",
    ]
    assert explained(events[:2]) == []


def test_a_registration_that_failed_or_is_near_is_told_as_such() -> None:
    refused = registration(2, A, 1000, error="hipErrorInvalidValue")
    assert "or registration is recorded" in explained([refused], A)[0]
    past, other, *_ = explained([allocation(1, A, 1000), registration(2, B, 2000)], B + 2007)
    assert past.endswith(f": 7 bytes past the end of registered memory of 2,000 bytes at {B:#x}")
    assert other == faults._OTHER_ADDRESS
    far = explained([registration(2, B, 2000)], 2**20)
    assert "far from every block" in far[0] and faults._OTHER_ADDRESS not in far
    unregistered = recorded.call("mgpuMemHostUnregister", 3, address=hex(B))
    again = [registration(2, B, 2000), unregistered, registration(4, B, 1000)]
    assert "  1 earlier registration contained this address" in explained(again, B)


def test_an_address_is_hexadecimal(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [], "otherData": {}}))
    done = invoke("stats", str(tmp_path / "t.json"), "--address", "7f00")
    assert done.output == "address 0x7f00: a null pointer, 32512 bytes further\n"
    for wrong in ("-1", "1" + 16 * "0", "x"):
        done = invoke("stats", str(tmp_path / "t.json"), "--address", wrong)
        assert done.exit_code == 2 and f"'{wrong}' is not an address such as 0x7f00" in done.stderr
