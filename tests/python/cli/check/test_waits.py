"""`mgpu-rt check` reports waits that are missing, and knows which calls wait."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.python.cli.check.mutants.form import THREADS, built
from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import hip
from tests.support.command import NO_FAULT, UNEXAMINED
from tests.support.suites import in_check

#: Copies to registered memory on a stream, and destroys the stream. Later, other streams make
#: copies, and the program waits in one of several ways.
DESTROYED = """
import ctypes, sys, threading
mgpu, way = ctypes.CDLL(None), sys.argv[1]
address, number, size = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
for name in "StreamCreate", "EventCreate", "MemAlloc":
    getattr(mgpu, "mgpu" + name).restype = address
mgpu.mgpuMemAlloc.argtypes = number, address, ctypes.c_bool
mgpu.mgpuMemFree.argtypes = mgpu.mgpuEventRecord.argtypes = address, address
mgpu.mgpuStreamWaitEvent.argtypes = address, address
mgpu.mgpuMemcpy.argtypes = address, address, size, address
mgpu.mgpuMemHostRegister.argtypes = address, number
for name in "StreamSynchronize", "StreamDestroy", "EventSynchronize", "EventDestroy":
    getattr(mgpu, "mgpu" + name).argtypes = [address]
whole = ctypes.create_string_buffer(64 * 300)
mgpu.mgpuMemHostRegister(whole, len(whole))
event = mgpu.mgpuEventCreate()

def copy_and_free(n=0):
    host = ctypes.addressof(whole) + 64 * n
    stream = mgpu.mgpuStreamCreate()
    memory = mgpu.mgpuMemAlloc(64, stream, False)
    mgpu.mgpuMemcpy(memory, host, 64, stream)
    mgpu.mgpuMemcpy(host, memory, 64, stream)
    mgpu.mgpuEventRecord(event, stream)
    mgpu.mgpuMemFree(memory, stream)
    mgpu.mgpuStreamDestroy(stream)

if way == "thread":
    other = threading.Thread(target=copy_and_free)
    other.start()
    other.join()
else:
    for n in range(300 if way == "many" else 1):
        copy_and_free(n)
if way == "event":
    mgpu.mgpuEventSynchronize(event)
pageable = ctypes.create_string_buffer(64)
for _ in range(300 if way == "others" else 1):
    stream = mgpu.mgpuStreamCreate()
    memory = mgpu.mgpuMemAlloc(64, stream, False)
    if way == "stream":
        mgpu.mgpuStreamWaitEvent(stream, event)
    mgpu.mgpuMemcpy(memory, pageable, 64, stream)
    mgpu.mgpuMemcpy(pageable, memory, 64, stream)
    mgpu.mgpuStreamSynchronize(stream)
    mgpu.mgpuMemFree(memory, stream)
    mgpu.mgpuStreamDestroy(stream)
if way == "device":
    ctypes.CDLL(sys.argv[2]).hipDeviceSynchronize()
mgpu.mgpuEventDestroy(event)
"""


@pytest.mark.parametrize(
    "way",
    in_check(["others", "thread", "many", "event", "stream", "device"], lambda way: way != "many"),
)
def test_a_wait_for_another_stream_does_not_wait_for_a_destroyed_one(way: str) -> None:
    done = check("--", sys.executable, "-c", DESTROYED, way, hip()["MGPU_RT_HIP"])
    awaited = way in ("event", "stream", "device")
    assert done.returncode == (0 if awaited else 1), done.stderr
    if awaited:
        assert done.stderr == NO_FAULT
    else:
        copies = 2 if way == "thread" else 301
        said = f"error: nothing waits for one of {copies} copies to the host on stream 1 ["
        assert said in done.stderr
        assert done.stderr.endswith(f"mgpu-rt: 1 fault{UNEXAMINED}\n")


#: Each round of a loop writes memory that the host reads: registered or host_shared. The kernel
#: loads before it stores.
KERNEL_WRITES = """
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  gpu.func @increment(%a: memref<?xi32>) kernel {{
    %i = gpu.thread_id x
    %one = arith.constant 1 : i32
    %v = memref.load %a[%i] : memref<?xi32>
    %w = arith.addi %v, %one : i32
    memref.store %w, %a[%i] : memref<?xi32>
    gpu.return
  }}
}}
func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>
func.func private @mgpuStreamDestroy(!llvm.ptr)
func.func @main() -> i32 {{
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %x = arith.constant 7 : i32
  %rounds = arith.constant {rounds} : index
  {memory}
  scf.for %i = %none to %n step %one {{
    memref.store %x, %host[%i] : memref<?xi32>
  }}
  scf.for %k = %none to %rounds step %one {{
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] (%n) : memref<?xi32>
    %t2 = {work}
    {freed}
    {end}
  }}
  {after}
  return %x : i32
}}
}}
"""
REGISTERED = """%host = memref.alloc(%n) : memref<?xi32>
  %all = memref.cast %host : memref<?xi32> to memref<*xi32>
  gpu.host_register %all : memref<*xi32>
  %seen = func.call @mgpuMemGetDeviceMemRef1dInt32(%host) : (memref<?xi32>) -> memref<?xi32>"""
SHARED = """%host = gpu.alloc host_shared (%n) : memref<?xi32>
  %seen = memref.cast %host : memref<?xi32> to memref<?xi32>"""
LAUNCH = """gpu.launch_func async [%t1] @kernels::@increment blocks in (%one, %one, %one)
        threads in (%n, %one, %one) args(%seen : memref<?xi32>)"""
FILL = "gpu.memset async [%t1] %seen, %x : memref<?xi32>, i32"
COPY_BACK = "gpu.memcpy async [%t1] %host, %d : memref<?xi32>, memref<?xi32>"
FREE = "%t3 = gpu.dealloc async [%t2] %d : memref<?xi32>"
DESTROY = """%s = builtin.unrealized_conversion_cast %t2 : !gpu.async.token to !llvm.ptr
    func.call @mgpuStreamDestroy(%s) : (!llvm.ptr) -> ()"""
WAITS = """%w0 = gpu.wait async
  %d, %w1 = gpu.alloc async [%w0] (%n) : memref<?xi32>
  %w2 = gpu.memset async [%w1] %d, %x : memref<?xi32>, i32
  gpu.wait [%w2]"""


def test_a_free_on_another_stream_is_no_wait_of_the_host(tmp_path: Path) -> None:
    """The host must wait for the copy, and so must the free."""
    freed = "%f0 = gpu.wait async\n    %f1 = gpu.dealloc async [%f0] %d : memref<?xi32>"
    words = {"memory": REGISTERED, "work": COPY_BACK, "rounds": 1, "freed": freed}
    text = KERNEL_WRITES.format(after="", end="gpu.wait [%f1]", **words)
    done = check("--", built(text, tmp_path), **THREADS, MGPU_RT_CHECK_UNINITIALISED="off")
    assert re.findall(r"\[(\w+-\w+)\]", done.stderr)[:2] == ["early-free", "missing-wait"]


UNAWAITED = [
    (REGISTERED, LAUNCH, 1, "", DESTROY, "error: kernel increment on stream 1 wrote register"),
    (SHARED, LAUNCH, 1, "", DESTROY, "error: kernel increment on stream 1 wrote host_shared"),
    (REGISTERED, LAUNCH, 5, FREE, DESTROY, "error: the last of 5 launches, kernel increment"),
    (REGISTERED, COPY_BACK, 1, FREE, DESTROY, "error: nothing waits for the copy to the"),
    (SHARED, COPY_BACK, 5, FREE, DESTROY, "error: nothing waits for the last of 5 copies to"),
    (SHARED, FILL, 1, FREE, DESTROY, "error: nothing waits for the fill of host_shared"),
    (REGISTERED, LAUNCH, 5, FREE, "gpu.wait [%t3]", ""),
    (SHARED, LAUNCH, 5, FREE, "gpu.wait [%t3]", ""),
    (SHARED, COPY_BACK, 5, FREE, "gpu.wait [%t3]", ""),
    (SHARED, FILL, 5, FREE, "gpu.wait [%t3]", ""),
]
OFTEN = ((REGISTERED, LAUNCH), (SHARED, COPY_BACK))


@pytest.mark.parametrize(
    ("memory", "work", "rounds", "freed", "end", "said"),
    in_check(UNAWAITED, lambda memory, work, *_: (memory, work) not in OFTEN),
)
def test_a_missing_wait_for_any_work_that_writes_host_memory_is_found(
    memory: str, work: str, rounds: int, freed: str, end: str, said: str, tmp_path: Path
) -> None:
    words = {"memory": memory, "work": work, "rounds": rounds, "freed": freed, "end": end}
    text = KERNEL_WRITES.format(after=WAITS, **words)
    done = check("--", built(text, tmp_path), **THREADS, MGPU_RT_CHECK_UNINITIALISED="off")
    found = re.findall(r"\[(\w+-\w+)\]\n  (\w+) on .* by main \(.*:(\d+)\)", done.stderr)
    # The copies of several rounds race, too: only a free is between them.
    kinds = [kind for kind, _, _ in found if kind not in ("never-destroyed", "stream-race")]
    assert (said in done.stderr, kinds) == (True, ["missing-wait"] * bool(said)), done.stderr
    if said:
        line = next(n for n, each in enumerate(text.splitlines(), 1) if "%t2 =" in each)
        assert found[0][2] == str(line)


#: One stream fills a block and frees another. A second stream copies the block to the host.
BETWEEN = """
func.func @main() -> i32 {{
  %zero = arith.constant 0 : i32
  %n = arith.constant 64 : index
  %host = memref.alloc(%n) : memref<?xi32>
  %s0 = gpu.wait async
  %block, %s1 = gpu.alloc async [%s0] (%n) : memref<?xi32>
  %scratch, %s2 = gpu.alloc async [%s1] (%n) : memref<?xi32>
  {before}
  %s3 = gpu.memset async [%s2] %block, %zero : memref<?xi32>, i32
  %s4 = gpu.dealloc async [%s3] %scratch : memref<?xi32>
  %t0 = gpu.wait async {after}
  %t1 = gpu.memcpy async [%t0] %host, %block : memref<?xi32>, memref<?xi32>
  gpu.wait [%s4, %t1]
  gpu.dealloc %block : memref<?xi32>
  return %zero : i32
}}
"""


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("%a0 = gpu.wait async [%s2]", "[%s3]", []),
        ("%a0 = gpu.wait async [%s2]\n gpu.wait [%a0]", "", ["stream-race"]),
        ("%a0 = gpu.wait async", "[%a0]", ["stream-race"]),
    ],
    ids=["token", "no token", "another token"],
)
def test_a_free_orders_nothing(before: str, after: str, kinds: list[str], tmp_path: Path) -> None:
    """LLVM's own library waits at the free, and so its results are right. This library's may be
    wrong."""
    done = check("--", built(BETWEEN.format(before=before, after=after), tmp_path))
    found = re.findall(r"error: .*\[(\w+-\w+)\]", done.stderr)
    assert (found, done.returncode) == (kinds, len(kinds)), done.stderr
    assert ("LLVM's own library waits at a free between them" in done.stderr) == bool(kinds)


def test_an_early_free_is_found_behind_another_free(tmp_path: Path) -> None:
    """Only LLVM's own library waits at the other free."""
    text = BETWEEN.format(before="%a0 = gpu.wait async [%s2]", after="[%s2]").replace(
        "gpu.memcpy async [%t0] %host, %block : memref<?xi32>, memref<?xi32>",
        "gpu.dealloc async [%t0] %block : memref<?xi32>",
    )
    done = check("--", built(text.replace("gpu.dealloc %block : memref<?xi32>", ""), tmp_path))
    assert re.findall(r"warning: .*\[(early-\w+)\]", done.stderr) == ["early-free"], done.stderr


def test_a_copy_waits_for_earlier_work(tmp_path: Path) -> None:
    """HIP waits for a copy to pageable memory, and so for the launch before it on its stream."""
    page = "%page = memref.alloc(%n) : memref<?xi32>"
    copy = "%t3 = gpu.memcpy async [%t2] %page, %d : memref<?xi32>, memref<?xi32>"
    words = {"memory": f"{SHARED}\n  {page}", "work": LAUNCH, "rounds": 1, "freed": copy}
    text = KERNEL_WRITES.format(end=DESTROY, after="", **words)
    done = check("--", built(text, tmp_path), **THREADS, MGPU_RT_CHECK_UNINITIALISED="off")
    assert done.returncode not in (1, 2) and "error: " not in done.stderr, done.stderr
    assert "warning: nothing waits for the copy to the host on stream 1 [missing" in done.stderr


def test_a_free_orders_no_launches(tmp_path: Path) -> None:
    words = {"memory": SHARED, "work": LAUNCH, "rounds": 2, "freed": FREE, "after": WAITS}
    text = KERNEL_WRITES.format(end=DESTROY, **words)
    done = check("--", built(text, tmp_path), **THREADS)
    (said,) = re.findall(r"error: (?:.|\n)*?(?=\nmgpu-rt|\nwarning)", done.stderr)
    assert "[stream-race]" in said and "waits at a free between them, this one does not" in said


def test_a_free_does_not_wait_before_an_unregister(tmp_path: Path) -> None:
    words = {"memory": REGISTERED, "work": COPY_BACK, "rounds": 1, "freed": FREE, "after": ""}
    end = "gpu.host_unregister %all : memref<*xi32>\n    gpu.wait [%t3]"
    done = check("--", built(KERNEL_WRITES.format(end=end, **words), tmp_path), **THREADS)
    assert re.findall(r"error: .*\[(\w+-\w+)\]", done.stderr) == ["early-unregister"]
    assert "waits at a free between them, this one does not" in done.stderr


#: Fills memory on two streams. Between the fills, the program waits by calling HIP directly.
FILLS = """
import ctypes, sys
mgpu, wait = ctypes.CDLL(None), sys.argv[1:]
address, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
mgpu.mgpuStreamCreate.restype = mgpu.mgpuMemAlloc.restype = address
mgpu.mgpuMemAlloc.argtypes = ctypes.c_uint64, address, ctypes.c_bool
mgpu.mgpuMemset32.argtypes = address, number, size, address
one, two = mgpu.mgpuStreamCreate(), mgpu.mgpuStreamCreate()
memory = mgpu.mgpuMemAlloc(256, None, False)
mgpu.mgpuMemset32(memory, 1, 64, one)
if wait:
    hip = ctypes.CDLL(wait[0])
    getattr(hip, wait[1])(*([address(one)] if "Stream" in wait[1] else []))
mgpu.mgpuMemset32(memory, 2, 64, two)
for stream in one, two:
    mgpu.mgpuStreamDestroy(address(stream))
"""


@pytest.mark.parametrize("wait", ["", "hipDeviceSynchronize", "hipStreamSynchronize"])
def test_a_wait_of_hips_own_counts(wait: str) -> None:
    words = [hip()["MGPU_RT_HIP"], wait] if wait else []
    done = check("--", sys.executable, "-c", FILLS, *words)
    assert done.returncode == (0 if wait else 1), done.stderr
    assert ("[stream-race]" in done.stderr) is (not wait)
