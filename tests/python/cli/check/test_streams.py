"""`mgpu-rt check` reports unordered work and calls with wrong handles, on the emulated device and
on a GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt._cli.check import orders
from tests.python.cli.check.mutants.form import THREADS, built, marked, reports_of
from tests.python.cli.check.test_check import check
from tests.python.cli.check.test_waits import DESTROY, FILLS, KERNEL_WRITES, LAUNCH, SHARED
from tests.python.runtime.hooked import program
from tests.support.child import STUB
from tests.support.command import NO_FAULT, UNEXAMINED, command
from tests.support.suites import in_check

#: The end of the last line on a GPU.
ON_GPU = "; not examined: kernels, what host code itself reads and writes"

HERE = Path(__file__).parent


def check_calls(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs check on the stub of HIP, without the emulated device."""
    return command("check", "--device", "hip", *words, MGPU_RT_HIP=str(STUB), MGPU_RT_MANAGER="off")


def test_work_in_order_is_no_race() -> None:
    done = check("--", program(HERE / "streams.mlir"), **THREADS)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)


#: One stream copies host memory to the device while a second stream overwrites the host memory with
#: a copy. The allocation of %shared, without a stream, orders nothing.
REUSED = """
func.func @main() -> i32 {{
  %zero = arith.constant 0 : i32
  %count = arith.constant 64 : index
  %host = memref.alloc(%count) : memref<?xi32>
  %all = memref.cast %host : memref<?xi32> to memref<*xi32>
  {before}
  %a0 = gpu.wait async
  %in, %a1 = gpu.alloc async [%a0] (%count) : memref<?xi32>
  %a2 = gpu.memcpy async [%a1] %in, %host : memref<?xi32>, memref<?xi32>
  %shared = gpu.alloc host_shared () : memref<i32>
  memref.store %zero, %shared[] : memref<i32>
  %b0 = gpu.wait async
  %out, %b1 = gpu.alloc async [%b0] (%count) : memref<?xi32>
  %b2 = gpu.memset async [%b1] %out, %zero : memref<?xi32>, i32
  %b3 = gpu.memcpy async [%b2] %host, %out : memref<?xi32>, memref<?xi32>
  gpu.wait [%b3]
  %a3 = gpu.dealloc async [%a2] %in : memref<?xi32>
  %a4 = gpu.dealloc async [%a3] %out : memref<?xi32>
  gpu.wait [%a4]
  {after}
  memref.dealloc %host : memref<?xi32>
  return %zero : i32
}}
"""


@pytest.mark.parametrize("registered", [False, True])
def test_hip_has_read_pageable_memory_when_a_copy_returns(registered: bool, tmp_path: Path) -> None:
    words = [f"gpu.host_{word} %all : memref<*xi32>" for word in ("register", "unregister")]
    before, after = words if registered else ("", "")
    found = reports_of([built(REUSED.format(before=before, after=after), tmp_path)], tmp_path)
    assert [report["kind"] for report in found] == ["stream-race"] * registered


def test_calls_in_order_are_no_fault_on_a_gpu() -> None:
    done = check_calls("--", program(HERE / "streams.mlir"))
    assert (done.returncode, done.stderr) == (0, f"mgpu-rt: found no fault{ON_GPU}\n")


def test_a_free_that_waits_only_with_stock_is_named() -> None:
    """The program reads too early with this library, and the warning says how it would not."""
    (said,) = orders.notes({"kind": "missing-wait", "memory": "registered", "forgiven": "yes"})
    assert "host code needs a gpu.wait before it reads what the GPU wrote" in said


@pytest.mark.check
@pytest.mark.parametrize(
    ("what", "kind", "status"),
    [
        ("token of an allocation left out", "early-use", 1),
        ("event dropped", "unrecorded-event", 1),
        ("handle misused", "stream-as-event", 1),
        ("handle misused", "use-after-destroy", 1),
        ("object left behind", "never-destroyed", 0),
        ("wait left out", "missing-wait", 0),
    ],
)
def test_a_fault_of_calls_is_found_on_a_gpu(
    what: str, kind: str, status: int, tmp_path: Path
) -> None:
    faults = marked("tests/python/cli/check/streams.mlir")
    mutant = next(each for each in faults if (each.what, each.kind) == (what, kind))
    source = tmp_path / f"{kind}.mlir"
    source.write_text(mutant.text)
    done = check_calls("--", program(source, lines=True))
    assert done.returncode == status
    assert f"[{kind}]" in done.stderr
    assert ("llvm #170833" in done.stderr) is (kind == "stream-as-event")
    number = next(n for n, line in enumerate(mutant.text.splitlines(), 1) if mutant.line in line)
    assert f"({kind}.mlir:{number})" in done.stderr


#: Operations without async beside two chains of tokens, in a region. The result is 2 * 2 * 1 + 1.
BESIDE = """
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  gpu.func @double(%a: memref<?xi32>) kernel {{
    %i = gpu.thread_id x
    %v = memref.load %a[%i] : memref<?xi32>
    %w = arith.addi %v, %v : i32
    memref.store %w, %a[%i] : memref<?xi32>
    gpu.return
  }}
}}
func.func @main() -> i32 {{
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %x = arith.constant 1 : i32
  %yes = arith.constant true
  %host = gpu.alloc host_shared (%n) : memref<?xi32>
  {begin} {{
    %a = gpu.alloc(%n) : memref<?xi32>
    gpu.memset %a, %x : memref<?xi32>, i32
    gpu.memcpy %host, %a : memref<?xi32>, memref<?xi32>
    %b = gpu.alloc (%n) : memref<?xi32>
    %a0 = gpu.wait async
    %a1 = gpu.memcpy async [%a0] %b, %host : memref<?xi32>, memref<?xi32>
    %b0 = gpu.wait async {joined}
    %b1 = gpu.launch_func async [%b0] @kernels::@double
        blocks in (%one, %one, %one) threads in (%n, %one, %one) args(%b : memref<?xi32>)
    gpu.launch_func [%b1] @kernels::@double
        blocks in (%one, %one, %one) threads in (%n, %one, %one) args(%b : memref<?xi32>)
    gpu.launch blocks(%gx, %gy, %gz) in (%lx = %one, %ly = %one, %lz = %one)
        threads(%i, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one) {{
      %v = memref.load %b[%i] : memref<?xi32>
      %w = arith.addi %v, %x : i32
      memref.store %w, %b[%i] : memref<?xi32>
      gpu.terminator
    }}
    gpu.memcpy [%b1] %host, %b : memref<?xi32>, memref<?xi32>
    gpu.dealloc %a : memref<?xi32>
    gpu.dealloc [%b1] %b : memref<?xi32>
    gpu.wait [%a1, %b1]
    {end}
  }}
  {after}
  %result = memref.load %host[%one] : memref<?xi32>
  gpu.dealloc %host : memref<?xi32>
  return %result : i32
}}
}}
"""
REGIONS = {
    "a block": ("scf.execute_region", "scf.yield", ""),
    "a loop": ("scf.for %k = %none to %one step %one", "", ""),
    "a branch": ("scf.if %yes", "", ""),
    "a task": ("%task = async.execute", "async.yield", "async.await %task : !async.token"),
}


@pytest.mark.parametrize(
    ("region", "llvm"),
    in_check(zip(REGIONS, (22, 19, 22, 19), strict=True), lambda *case: case[0] != "a block"),
)
@pytest.mark.parametrize("ordered", [True, False])
def test_operations_without_async_leave_the_order_of_others(
    region: str, llvm: int, ordered: bool, tmp_path: Path
) -> None:
    begin, end, after = REGIONS[region]
    source = tmp_path / "beside.mlir"
    joined = "[%a1]" if ordered else ""
    source.write_text(BESIDE.format(begin=begin, end=end, after=after, joined=joined))
    done = check("--llvm", llvm, source)
    if ordered:
        assert (done.returncode, done.stderr.splitlines()[-1]) == (5, NO_FAULT.strip())
    else:
        assert done.returncode == 1
        assert re.findall(r"\[(.+-.+)\]", done.stderr) == ["stream-race"]


#: A loop carries a token, so that LLVM lowers each gpu.wait on it to calls for an event.
CARRIED = """
func.func @main() -> i32 {
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 4 : index
  %seven = arith.constant 7 : i32
  %host = memref.alloc() : memref<4xi32>
  %t0 = gpu.wait async
  %a, %t1 = gpu.alloc async [%t0] () : memref<4xi32>
  %t2 = scf.for %i = %none to %n step %one iter_args(%t = %t1) -> !gpu.async.token {
    %filled = gpu.memset async [%t] %a, %seven : memref<4xi32>, i32
    scf.yield %filled : !gpu.async.token
  }
  %t3 = gpu.memcpy async [%t2] %host, %a : memref<4xi32>, memref<4xi32>
  %t4 = gpu.dealloc async [%t3] %a : memref<4xi32>
  gpu.wait [WAITED]
  %result = memref.load %host[%one] : memref<4xi32>
  return %result : i32
}
"""


@pytest.mark.parametrize(
    ("waited", "kinds"),
    [
        ("%t4", ["stream-as-event"]),
        ("%t3, %t4", ["stream-as-event", "use-after-destroy", "use-after-destroy"]),
    ],
)
def test_a_stream_in_place_of_an_event_is_awaited_and_destroyed(
    waited: str, kinds: list[str], tmp_path: Path
) -> None:
    source = tmp_path / "carried.mlir"
    source.write_text(CARRIED.replace("WAITED", waited))
    done = check("--llvm", 22, source)
    assert done.returncode == 1
    assert re.findall(r"\[(\w+-\w+-\w+)\]", done.stderr) == kinds, done.stderr
    assert ("lists more than one token of stream 1" in done.stderr) is (len(kinds) > 1)


#: A kernel on one stream reads what a copy and a kernel write on another.
TWO_STREAMS = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @square(%a: memref<128xi32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<128xi32>
      %w = arith.muli %v, %v : i32
      memref.store %w, %a[%i] : memref<128xi32>
      gpu.return
    }
    gpu.func @sum(%a: memref<128xi32>, %b: memref<128xi32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<128xi32>
      %w = memref.load %b[%i] : memref<128xi32>
      %s = arith.addi %v, %w : i32
      memref.store %s, %b[%i] : memref<128xi32>
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 128 : index
    %three = arith.constant 3 : i32
    %host = memref.alloc() : memref<128xi32>
    scf.for %i = %none to %n step %one {
      memref.store %three, %host[%i] : memref<128xi32>
    }
    %a0 = gpu.wait async
    %a, %a1 = gpu.alloc async [%a0] () : memref<128xi32>
    %a2 = gpu.memcpy async [%a1] %a, %host : memref<128xi32>, memref<128xi32>
    %a3 = gpu.launch_func async [%a2] @kernels::@square blocks in (%one, %one, %one)
        threads in (%n, %one, %one) args(%a : memref<128xi32>)
    %b0 = gpu.wait async
    %b, %b1 = gpu.alloc async [%b0] () : memref<128xi32>
    %b2 = gpu.memcpy async [%b1] %b, %host : memref<128xi32>, memref<128xi32>
    %b3 = gpu.launch_func async [%b2] @kernels::@sum blocks in (%one, %one, %one)
        threads in (%n, %one, %one) args(%a : memref<128xi32>, %b : memref<128xi32>)
    %b4 = gpu.memcpy async [%b3] %host, %b : memref<128xi32>, memref<128xi32>
    %b5 = gpu.dealloc async [%b4] %b : memref<128xi32>
    %a4 = gpu.dealloc async [%a3] %a : memref<128xi32>
    gpu.wait [%b5, %a4]
    %sum = memref.load %host[%one] : memref<128xi32>
    return %sum : i32
  }
}
"""


def test_one_missing_wait_for_a_copy_and_a_kernel_causes_one_report(tmp_path: Path) -> None:
    found = reports_of([built(TWO_STREAMS, tmp_path)], tmp_path)
    assert [report["kind"] for report in found] == ["stream-race"]


def test_a_handle_that_came_back_names_the_stream_that_had_it_before(tmp_path: Path) -> None:
    text = TWO_STREAMS.replace("    %b0 =", "    gpu.wait [%a3]\n    %b0 =")
    done = check("--", built(text, tmp_path))
    line = text.splitlines().index("    gpu.wait [%a3]") + 1
    before = "  or stream 1, which had this handle before, destroyed by main ("
    assert re.search(rf"{re.escape(before)}\S+:{line}\)", done.stderr), done.stderr


#: Creates and destroys events or streams with one handle, and then uses the handle.
HANDLES = """
import ctypes, sys
mgpu, what, many = ctypes.CDLL(None), sys.argv[1], int(sys.argv[2])
create, destroy = (getattr(mgpu, f"mgpu{what}{does}") for does in ("Create", "Destroy"))
create.restype, destroy.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
handles = set()
for _ in range(many):
    handles.add(create())
    destroy(list(handles)[0])
assert len(handles) == 1
mgpu.mgpuEventRecord.argtypes = [ctypes.c_void_p] * 2
mgpu.mgpuStreamSynchronize.argtypes = [ctypes.c_void_p]
handle = handles.pop()
mgpu.mgpuEventRecord(handle, None) if what == "Event" else mgpu.mgpuStreamSynchronize(handle)
"""


@pytest.mark.parametrize("what", ["event", "stream"])
@pytest.mark.parametrize(
    ("many", "first"),
    [(2, None), (3, "or WHAT 1, the first one,"), (5, "or one of 3 more, the first WHAT 1,")],
)
def test_a_handle_that_several_had_before_names_the_first(
    what: str, many: int, first: str | None
) -> None:
    done = check("--", sys.executable, "-c", HANDLES, what.title(), str(many))
    assert f" gets the handle of {what} {many} after it was destroyed [" in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("  or ")]
    before, *others = [line.partition(" destroyed by ")[0].strip() for line in lines]
    assert before == f"or {what} {many - 1}, which had this handle before,"
    assert others == ([first.replace("WHAT", what)] if first else [])


#: Creates three streams at one place, and copies to the host on each stream.
LEFT = """
import ctypes
mgpu = ctypes.CDLL(None)
mgpu.mgpuStreamCreate.restype = mgpu.mgpuMemAlloc.restype = ctypes.c_void_p
memory = ctypes.c_void_p(mgpu.mgpuMemAlloc(ctypes.c_uint64(64), None, False))
host = ctypes.create_string_buffer(64)
mgpu.mgpuMemset32(memory, 1, ctypes.c_size_t(16), None)
for stream in [ctypes.c_void_p(mgpu.mgpuStreamCreate()) for _ in range(3)]:
    mgpu.mgpuMemcpy(host, memory, ctypes.c_size_t(64), stream)
"""


def test_a_report_says_how_many_streams_and_copies_of_one_place_it_stands_for() -> None:
    done = check("--", sys.executable, "-c", LEFT)
    assert done.returncode == 0, done.stderr
    assert "nothing waits for the last of 3 copies to the host on stream 3 [" in done.stderr
    more = ", nor are 2 more created there, up to stream 3 ["
    assert f"stream 1 is never destroyed{more}" in done.stderr
    assert done.stderr.endswith(f"\nmgpu-rt: 2 warnings{UNEXAMINED}\n")


def test_reports_number_streams_by_creation(tmp_path: Path) -> None:
    """Each round also creates and destroys a stream. HIP may use its handle again."""
    again = """gpu.wait [%t0]
    %u0 = gpu.wait async
    %t2 ="""
    words = {"memory": SHARED, "freed": "", "end": "", "after": "", "rounds": 4}
    text = KERNEL_WRITES.format(work=LAUNCH.replace("%t1", "%u0"), **words)
    done = check("--", built(text.replace("%t2 =", again), tmp_path), **THREADS)
    assert "kernel increment on stream 8, wrote" in done.stderr
    more = ", nor are 3 more created there, up to stream 8 ["
    assert f"stream 2 is never destroyed{more}" in done.stderr


CROWD = """
func.func @main() {
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant MANY : index
  scf.for %i = %none to %many step %one {
    %stream = gpu.wait async
  }
  return
}
"""
CROWDED = "creates stream 256 while 255 others exist or have work that nothing waited for: "


@pytest.mark.parametrize(("many", "kinds"), [(255, []), (300, ["crowded"])])
def test_streams_that_check_cannot_order_are_told(
    many: int, kinds: list[str], tmp_path: Path
) -> None:
    done = check("--", built(CROWD.replace("MANY", str(many)), tmp_path), **THREADS)
    assert re.findall(r"\[(\w+(?:-\w+)?)\]", done.stderr) == [*kinds, "never-destroyed"]
    assert (CROWDED in done.stderr) == bool(kinds)


#: Each round fills a block on a stream, and destroys the stream.
CROWD_DESTROYED = """
func.func private @mgpuStreamDestroy(!llvm.ptr)
func.func @main() {
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 400 : index
  %zero = arith.constant 0 : i32
  scf.for %i = %none to %many step %one {
    %block = gpu.alloc host_shared () : memref<1xi32>
    %t0 = gpu.wait async
    %t1 = gpu.memset async [%t0] %block, %zero : memref<1xi32>, i32
    END
  }
  return
}
"""


@pytest.mark.parametrize("waits", [False, True])
def test_destroyed_streams_crowd_until_a_wait(waits: bool, tmp_path: Path) -> None:
    """One stream exists at a time: without the wait, check must remember its work."""
    end = "gpu.wait [%t1]" if waits else DESTROY.replace("%t2", "%t1")
    done = check("--", built(CROWD_DESTROYED.replace("END", end), tmp_path), **THREADS)
    assert (CROWDED in done.stderr) is not waits, done.stderr
    assert "which had this handle before" not in done.stderr


def test_streams_are_not_compared_if_waits_may_go_unseen() -> None:
    opened_first = f"import ctypes; ctypes.CDLL({str(STUB)!r}).hipDeviceSynchronize()\n{FILLS}"
    done = check_calls("--", sys.executable, "-c", opened_first)
    assert (done.returncode, done.stderr) == (0, f"mgpu-rt: found no fault{ON_GPU}\n")
