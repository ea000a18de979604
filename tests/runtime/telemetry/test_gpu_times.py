"""MGPU_RT_TRACE=gpu,PATH: the trace shows when the GPU worked, and the program's results are
unchanged."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.child import STUB, Mgpu, environment, in_child, library
from tests.support.folders import in_folder
from tests.support.images import code_object
from tests.support.patience import HANG
from tests.support.programs import run, ways

RING = 1024  # pairs of events
OFF = {"policies": ("builtin",), "MGPU_RT_TRACE": "trace.json"}
ON = {**OFF, "MGPU_RT_TRACE": "gpu,trace.json"}
KERNEL = "test_func"
HIP_7 = "70000000"


def kernel(mgpu: Mgpu):
    return mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)


def recorded(mgpu: Mgpu) -> tuple[list[dict], int]:
    """Returns the trace's GPU rows so far, and the number of operations whose times were lost."""
    trace = json.loads(mgpu.ffi.string(mgpu.lib.mgpu_rt_recording_json(b"trace.json")))
    rows = [event for event in trace["traceEvents"] if event.get("cat") == "gpu"]
    return rows, trace["otherData"]["gpu_lost"]


def made(mgpu: Mgpu) -> tuple[int, ...]:
    """Returns how many events were created and recorded, and how often an event was waited for."""
    names = ("hipEventCreateWithFlags", "hipEventRecord", "hipEventSynchronize")
    return tuple(mgpu.counts(*names).values())


@in_child(**OFF)
@in_folder
def test_nothing_is_timed_unless_asked_for(mgpu: Mgpu) -> None:
    mgpu.launch(kernel(mgpu), mgpu.StreamCreate())
    assert made(mgpu) == (0, 0, 0)


@in_child(**ON)
@in_folder
def test_no_event_goes_to_a_stream_that_hip_has_destroyed(mgpu: Mgpu) -> None:
    """HIP 7 refuses a launch on a destroyed stream, but recording an event on a destroyed stream
    ends the process."""
    function, stream = kernel(mgpu), mgpu.StreamCreate()
    mgpu.stub.hipStreamDestroy(mgpu.for_stub(stream))
    mgpu.launch(function, stream)
    assert made(mgpu) == (0, 0, 0)
    assert recorded(mgpu) == ([], 1)


@in_child(**ON)
@in_folder
def test_a_pair_of_events_is_used_again(mgpu: Mgpu) -> None:
    """The library reads the times of a pair of events before it uses the pair again. HIP also
    creates a reference event, which the library records twice."""
    function, stream = kernel(mgpu), mgpu.StreamCreate()
    for _ in range(3):
        mgpu.launch(function, stream)
    assert made(mgpu) == (1 + 2 * 3, 2 + 2 * 3, 0)
    assert recorded(mgpu) == ([], 0)
    for _ in range(RING):
        mgpu.launch(function, stream)
    assert made(mgpu) == (1 + 2 * RING, 2 + 2 * (RING + 3), 0)
    rows, lost = recorded(mgpu)
    assert [(row["name"], row["tid"], row["args"]) for row in rows] == [
        (KERNEL, 1, {"kernel": KERNEL, "stream": 1})
    ] * 3
    assert lost == 0


@in_child(**ON, HIPSTUB_ASYNC="0")
@in_folder
def test_a_full_ring_is_not_waited_for(mgpu: Mgpu) -> None:
    """The program also makes launches for which the ring has no free place."""
    function, stream, go_on = kernel(mgpu), mgpu.StreamCreate(), threading.Event()
    body = mgpu.ffi.callback("void(void **)", lambda _: go_on.wait() and None)
    mgpu.set_kernel(KERNEL, body)
    for _ in range(RING + 3):
        mgpu.launch(function, stream)
    assert made(mgpu) == (1 + 2 * RING, 2 + 2 * RING, 0)
    assert recorded(mgpu) == ([], 3)
    go_on.set()
    mgpu.StreamSynchronize(stream)
    mgpu.launch(function, stream)
    mgpu.StreamSynchronize(stream)
    rows, lost = recorded(mgpu)
    assert (len(rows), lost) == (1, 3)


@in_child(**ON, HIPSTUB_ASYNC="0")
@in_folder
def test_a_slow_stream_does_not_keep_out_others(mgpu: Mgpu) -> None:
    """An operation loses its time only if a launch of the slow stream still occupies the
    operation's place in the ring."""
    function, go_on = kernel(mgpu), threading.Event()
    slow, fast = mgpu.StreamCreate(), mgpu.StreamCreate()
    memory = mgpu.MemAlloc(4, fast, False)
    body = mgpu.ffi.callback("void(void **)", lambda _: go_on.wait() and None)
    mgpu.set_kernel(KERNEL, body)
    mgpu.launch(function, slow)
    for _ in range(RING + 3):
        mgpu.Memset32(memory, 0, 1, fast)
        mgpu.StreamSynchronize(fast)
    rows, lost = recorded(mgpu)
    go_on.set()
    mgpu.StreamSynchronize(slow)
    assert ([row["name"] for row in rows], lost) == (["hipMemsetD32Async"] * 3, 1)


@in_child(**ON, HIPSTUB_DEVICES="2")
@in_folder
def test_events_are_of_the_device_that_they_are_recorded_on(mgpu: Mgpu) -> None:
    function, stream = kernel(mgpu), mgpu.StreamCreate()
    for _ in range(RING):
        mgpu.launch(function, stream)
    mgpu.SetDefaultDevice(1)
    mgpu.launch(function, mgpu.StreamCreate())
    assert mgpu.count("hipEventDestroy") == 2
    assert made(mgpu) == (2 + 2 * (RING + 1), 4 + 2 * (RING + 1), 0)


@in_child(**ON)
@in_folder
def test_a_device_that_was_reset_has_none_of_the_events(mgpu: Mgpu) -> None:
    """The library detects the reset when it times the memset, because the program requests no
    cached object before the memset."""
    mgpu.launch(kernel(mgpu), mgpu.StreamCreate())
    mgpu.stub.hipDeviceReset()
    own = mgpu.stub_ffi.new("void *[2]")
    mgpu.stub.hipMalloc(own, 4096)
    mgpu.stub.hipStreamCreate(own + 1)
    mgpu.Memset32(mgpu.from_stub(own[0]), 1, 1024, mgpu.from_stub(own[1]))
    assert made(mgpu) == (2 + 2 * 2, 4 + 2 * 2, 0)
    assert mgpu.stub.hipstub_misuse() == 0
    assert recorded(mgpu) == ([], 1)


@in_child(**ON)
@in_folder
def test_a_child_of_fork_times_nothing(mgpu: Mgpu) -> None:
    """HIP does not survive a fork."""
    function, stream = kernel(mgpu), mgpu.StreamCreate()
    mgpu.launch(function, stream)
    before = made(mgpu)
    child = os.fork()
    if not child:
        mgpu.launch(function, stream)
        os._exit(0 if made(mgpu) == before else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- streams that wait for the program ----


def occupy(mgpu: Mgpu, function, stream) -> threading.Event:
    """Submits a kernel by calling HIP; returns the event that lets the kernel end."""
    go_on = threading.Event()
    signal.alarm(40)  # ends one that hangs
    body = mgpu.ffi.callback("void(void **)", lambda _: go_on.wait() and None)
    mgpu.keep(body)
    mgpu.set_kernel(KERNEL, body)
    address = [ctypes.c_void_p(int(mgpu.ffi.cast("uintptr_t", it))) for it in (function, stream)]
    ctypes.CDLL(str(STUB)).hipModuleLaunchKernel(address[0], *[1] * 6, 0, address[1], None, None)
    return go_on


@in_child(**ON, HIPSTUB_ASYNC="0")
@in_folder
def test_a_first_stream_that_waits_for_the_program_is_abandoned(mgpu: Mgpu) -> None:
    """The library waits one second for the first event of a device. If the wait fails, the library
    times no work of this device for 60 s."""
    function, stream = kernel(mgpu), mgpu.StreamCreate()
    memory = mgpu.MemAlloc(4, stream, False)
    go_on = occupy(mgpu, function, stream)
    for _ in range(3):
        mgpu.Memset32(memory, 0, 1, stream)
    assert recorded(mgpu) == ([], 3)
    go_on.set()
    mgpu.StreamSynchronize(stream)


@in_child(**ON, HIPSTUB_ASYNC="0")
@in_folder
def test_no_thread_waits_for_another_that_reads_an_event(mgpu: Mgpu) -> None:
    """Two threads on two streams: the first thread waits for an event, the second thread makes the
    event complete. The kernel is a Python function, so the test waits for the kernel before the
    interpreter ends."""
    function, stream, other = kernel(mgpu), mgpu.StreamCreate(), mgpu.StreamCreate()
    memory = mgpu.MemAlloc(4, stream, False)
    go_on = occupy(mgpu, function, stream)
    first = threading.Thread(target=lambda: mgpu.Memset32(memory, 0, 1, stream))
    first.start()
    mgpu.Memset32(mgpu.MemAlloc(4, other, False), 0, 1, other)
    go_on.set()
    first.join()
    mgpu.StreamSynchronize(stream)
    mgpu.StreamSynchronize(other)


# ---- the last error ----


@in_child(**ON, HIPSTUB_FAULT="hipModuleLaunchKernel:1:98")
@in_folder
def test_timing_keeps_the_error_of_a_launch(mgpu: Mgpu) -> None:
    """In HIP 6 and older, a successful call clears the last error."""
    mgpu.launch(kernel(mgpu), mgpu.StreamCreate())
    assert mgpu.stub.hipGetLastError() == 98
    assert recorded(mgpu) == ([], 0)


#: The events are: the reference event, an event before the launch, and an event after the launch.
RECORDS = ("hipEventRecord:1:2", "hipEventRecord:3:2", "hipEventRecord:4:2")


def an_error_of_ours(mgpu: Mgpu) -> None:
    mgpu.launch(kernel(mgpu), mgpu.StreamCreate())
    assert mgpu.stub.hipGetLastError() == 0
    assert recorded(mgpu) == ([], 1)
    assert mgpu.stderr() == ""


@in_child(**ON, HIPSTUB_FAULT=RECORDS[2])
@in_folder
def test_the_program_sees_no_error_of_a_timing_event(mgpu: Mgpu) -> None:
    an_error_of_ours(mgpu)


@in_child(**ON, HIPSTUB_FAULT=RECORDS[0], HIPSTUB_VERSION=HIP_7)
@in_folder
def test_the_program_sees_no_error_without_a_reference(mgpu: Mgpu) -> None:
    an_error_of_ours(mgpu)


@in_child(**ON, HIPSTUB_FAULT="hipEventCreateWithFlags:*:2", HIPSTUB_VERSION=HIP_7)
@in_folder
def test_the_program_sees_no_error_without_an_event(mgpu: Mgpu) -> None:
    an_error_of_ours(mgpu)


@in_child(**ON, backends=("softgpu",))
@in_folder
def test_a_function_that_hip_lacks_is_not_timed(mgpu: Mgpu) -> None:
    """HIP 5.2.3 lacks cooperative launches. In HIP 6 and older, recording an event before or after
    the launch would clear the last error."""
    stream = mgpu.StreamCreate()
    error = mgpu.stub.hipSetDevice(99)
    mgpu.LaunchKernelCooperative(mgpu.null, *[1] * 9, 0, stream, mgpu.null, mgpu.null)
    assert mgpu.stub.hipGetLastError() == error != 0
    assert recorded(mgpu) == ([], 0)


# ---- the end ----

PROGRAM = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.mgpuStreamCreate.restype = lib.mgpuMemAlloc.restype = ctypes.c_void_p
stream = ctypes.c_void_p(lib.mgpuStreamCreate())
memory = ctypes.c_void_p(lib.mgpuMemAlloc(ctypes.c_size_t(4000), stream, 0))
for value in range(3):
    lib.mgpuMemset32(memory, value, ctypes.c_size_t(1000), stream)
lib.mgpuStreamSynchronize(stream)
if sys.argv[2] == "quick_exit":
    ctypes.CDLL(None).quick_exit(0)
"""


def at_end(how: str) -> None:
    """At the end of the process the library reads and empties the ring."""
    env = environment(MGPU_RT_TRACE="gpu,trace.json", MGPU_RT_MANAGER="off", HIPSTUB_LOG="log")
    command = [sys.executable, "-c", PROGRAM, str(library()), how]
    subprocess.run(command, env=env, timeout=HANG, check=True)
    trace = json.loads(Path("trace.json").read_text())
    rows = [event for event in trace["traceEvents"] if event.get("cat") == "gpu"]
    assert [(row["name"], row["args"]) for row in rows] == [
        ("hipMemsetD32Async", {"stream": 1, "bytes": 4000})
    ] * 3
    assert trace["otherData"]["gpu_lost"] == 0


@in_child(policies=("builtin",))
@in_folder
def test_an_exit_reads_finished_events(mgpu: Mgpu) -> None:
    at_end("exit")


@in_child(policies=("builtin",))
@in_folder
def test_a_quick_exit_reads_finished_events(mgpu: Mgpu) -> None:
    at_end("quick_exit")


@pytest.mark.parametrize("backend", ["stub", "softgpu"])
@pytest.mark.parametrize("program", ["forum", "churn"])
def test_work_is_after_its_call_and_in_order(program: str, backend: str, tmp_path: Path) -> None:
    """AMD's own HIP runs the launches on the emulated device: each launch is in its stream's
    row."""
    path = tmp_path / "trace.json"
    way, trace = ways()["linked"], f"gpu,{path}"
    outcome = run(program, 22, way, backend=backend, iterations=3, MGPU_RT_TRACE=trace)
    assert outcome.signal == 0
    trace = json.loads(path.read_text())
    assert trace["otherData"]["gpu_lost"] == 0
    calls = [e for e in trace["traceEvents"] if e["name"] == "mgpuLaunchKernel"]
    rows = [e for e in trace["traceEvents"] if e.get("cat") == "gpu"]
    launches = [row for row in rows if "kernel" in row["args"]]
    assert [row["name"] for row in launches] == [call["args"]["kernel"] for call in calls]
    assert [row["tid"] for row in launches] == [call["args"]["stream"] for call in calls]
    assert all(row["ts"] >= call["ts"] for row, call in zip(launches, calls, strict=True))
    ends: dict[int, float] = {}
    for row in rows:
        assert row["ts"] >= ends.get(row["tid"], 0) - 0.1  # in microseconds: HIP answers in floats
        ends[row["tid"]] = row["ts"] + row["dur"]
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {(row["pid"], row["tid"]) for row in rows} <= named
