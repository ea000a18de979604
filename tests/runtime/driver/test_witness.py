"""Tests that the library learns from HIP who calls it, and leaves out queries only while no other
code has called HIP.

The stub reports calls with HIPSTUB_TELLS=1, as AMD's HIP does from 5.3 on.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

from tests.support.child import Mgpu, in_cases, in_child, library
from tests.support.images import code_object
from tests.support.known import KERNEL

KIB = 1 << 10
#: HIP 7, because its rules for the last error let hipPeekAtLastError be the probe.
TELLS = {"HIPSTUB_TELLS": "1", "HIPSTUB_REUSE": "1", "HIPSTUB_VERSION": "70253211"}
#: The words after the name of the first call that other code made, in the statistics.
FIRST = "was the first"
PROBE = "hipPeekAtLastError"
QUERIES = (
    "hipPointerGetAttribute",
    "hipPointerGetAttributes",
    "hipMemGetAddressRange",
    "hipStreamQuery",
    "hipStreamGetFlags",
    "hipStreamGetDevice",
    "hipEventQuery",
)
#: The calls in one round of Loop.run that would query HIP: mgpuStreamCreate, mgpuMemAlloc,
#: mgpuMemFree, mgpuStreamDestroy.
HITS = 4


class Loop:
    """Makes launches as lowered code does, with a block and a copy back."""

    def __init__(self, mgpu: Mgpu) -> None:
        self.mgpu, self.size = mgpu, 4 * KIB
        self.out = mgpu.ffi.new("uint32_t[]", self.size // 4)
        self.module = mgpu.load(mgpu.image(code_object("forum")))
        self.word = 0

    def run(self, rounds: int = 1) -> None:
        mgpu = self.mgpu
        for _ in range(rounds):
            self.word += 1
            stream = mgpu.StreamCreate()
            block = mgpu.MemAlloc(self.size, stream, False)
            mgpu.Memset32(block, self.word, self.size // 4, stream)
            mgpu.launch(mgpu.function(self.module, KERNEL), stream)
            mgpu.Memcpy(self.out, block, self.size, stream)
            mgpu.StreamSynchronize(stream)
            assert set(self.out) == {self.word}
            mgpu.MemFree(block, stream)
            mgpu.StreamDestroy(stream)

    def queries(self, rounds: int = 10) -> int:
        """Returns how many queries the given number of rounds makes."""
        before = sum(self.mgpu.counts(*QUERIES).values())
        self.run(rounds)
        return sum(self.mgpu.counts(*QUERIES).values()) - before

    def is_sole_user(self) -> bool:
        return self.queries() == 0

    def is_cached(self) -> bool:
        before = self.mgpu.count("hipMalloc")
        self.run(2)
        return self.mgpu.count("hipMalloc") == before


def begin(mgpu: Mgpu) -> Loop:
    """Returns a loop whose caches are full, in a library that is the sole user of HIP."""
    loop = Loop(mgpu)
    loop.run(3)
    assert loop.is_sole_user()
    return loop


@in_child(**TELLS)
def test_a_hit_makes_one_probe_and_no_query(mgpu: Mgpu) -> None:
    loop = begin(mgpu)
    before = mgpu.count(PROBE)
    loop.run(100)
    assert mgpu.count(PROBE) - before == 100 * HITS
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


@in_cases({version: {**TELLS, "HIPSTUB_VERSION": version} for version in ("60443484", "70253211")})
def test_the_probe_leaves_the_last_error_as_a_query_does(mgpu: Mgpu, version: str) -> None:
    """Up to HIP 6 a query clears the last error, and from HIP 7 on leaves it."""
    begin(mgpu)
    error = mgpu.stub.hipSetDevice(5)  # a call that leaves an error, and changes nothing
    assert error != 0
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.stub.hipGetLastError() == (0 if version.startswith("6") else error)
    assert mgpu.stderr() == ""


#: Calls of other code that may change HIP's objects, and their arguments. foreign.c calls more
#: functions.
OTHERS = {"hipMalloc": (KIB,), "hipEventCreate": ()}
CASES = (*OTHERS, "hipMalloc on a thread")


def call_others(mgpu: Mgpu, case: str) -> str:
    """Lets other code make the call of a case; returns the call's name."""
    name, _, on_a_thread = case.partition(" ")
    thread = threading.Thread(target=mgpu.by_hip, args=(name, *OTHERS[name]))
    if on_a_thread:
        thread.start()
        thread.join()
    else:
        thread.run()
    return name


@in_cases(CASES, **TELLS)
def test_a_call_of_other_code_ends_it(mgpu: Mgpu, case: str) -> None:
    loop = begin(mgpu)
    call_others(mgpu, case)
    assert not loop.is_sole_user()
    assert mgpu.stub.hipstub_registrations() == 1


@in_child(**TELLS, MGPU_RT_SYNC="lazy", HIPSTUB_ASYNC="held")
def test_nothing_is_postponed_and_nothing_stays_registered(mgpu: Mgpu) -> None:
    """Other code may call HIP later, and must then find what it finds with stock."""
    begin(mgpu)
    stream, memory = mgpu.StreamCreate(), mgpu.ffi.new("char[]", KIB)
    for _ in range(3):
        mgpu.MemHostRegister(memory, KIB)
        mgpu.MemHostUnregister(memory)
        mgpu.Memset32(mgpu.MemAlloc(KIB, stream, False), 1, KIB // 4, stream)
        mgpu.StreamSynchronize(stream)
        assert mgpu.pending(stream) == 0
    assert mgpu.count("hipHostRegister") == mgpu.count("hipHostUnregister") == 3


# ---- what other code may do to the library's objects ----


@in_child(**TELLS)
def test_a_reset_is_seen(mgpu: Mgpu) -> None:
    loop = begin(mgpu)
    assert mgpu.stub.hipDeviceReset() == 0
    mgpu.by_hip("hipMalloc", loop.size)  # perhaps at the block's address
    mgpu.by_hip("hipStreamCreate")
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_cached()  # the library has noticed the reset
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


@in_child(**TELLS, HIPSTUB_ASYNC="held")
def test_a_stream_with_work_of_other_code_is_not_handed_out(mgpu: Mgpu) -> None:
    streams = [mgpu.StreamCreate() for _ in range(2)]  # the thread's last stream, and another one
    for stream in streams:
        mgpu.StreamDestroy(stream)
    block = mgpu.for_stub(mgpu.by_hip("hipMalloc", KIB))
    for stream in streams:
        handle = mgpu.for_stub(stream)
        assert mgpu.stub.hipMemsetAsync(block, 1, KIB, handle) == 0
    assert mgpu.StreamCreate() not in streams
    for stream in streams:
        assert mgpu.stub.hipStreamSynchronize(mgpu.for_stub(stream)) == 0


# ---- the callback ----


@in_cases(("in use", "ended"), **TELLS, MGPU_RT_VERBOSE="1")
def test_a_replaced_callback_ends_it_for_good(mgpu: Mgpu, case: str) -> None:
    """A profiler sets its own callback, and NULL when the profiler ends."""
    ended = case == "ended"
    loop = begin(mgpu)
    reports: list[int] = []

    @mgpu.stub_ffi.callback("int(int, uint32_t, void *)")
    def profiler(_domain: int, operation: int, _data: object) -> int:
        reports.append(operation)
        return 0

    mgpu.stub.hipRegisterTracerCallback(profiler)
    assert mgpu.stub.hipDeviceReset() == 0  # the library does not hear of this call
    if ended:
        mgpu.stub.hipRegisterTracerCallback(mgpu.stub_ffi.NULL)
    mgpu.by_hip("hipMalloc", loop.size)  # perhaps at the block's address
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_cached()  # the library has noticed the reset
    assert mgpu.stub.hipstub_misuse() == 0
    assert (len(reports) > 10) == (not ended)  # the profiler gets all reports
    assert mgpu.stub.hipstub_registrations() == 2 + ended
    mgpu.stub.hipRegisterTracerCallback(mgpu.stub_ffi.NULL)
    assert mgpu.stderr().count("HIP no longer reports calls to this library") == 1


#: Why the library remains one of several users from the start: variables, and whether it registers.
QUERIED = {
    "HIP does not report": ({"HIPSTUB_TELLS": "0"}, True),
    "HIP was used before": ({}, False),  # HIP does not report what came before the registration
    "a profiler": ({"GPU_CLR_PROFILE": "1"}, False),
}


@in_cases({case: {**TELLS, **env} for case, (env, _) in QUERIED.items()})
def test_hip_is_queried_where_it_cannot_report(mgpu: Mgpu, case: str) -> None:
    if case == "HIP was used before":
        mgpu.by_hip("hipMalloc", KIB)
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_sole_user()
    registers = QUERIED[case][1]
    assert mgpu.stub.hipstub_registrations() == registers
    assert mgpu.count(PROBE) == registers  # the first probe shows it


UNASKED = (
    {"MGPU_RT_CACHE": "off"},
    {"MGPU_RT_EXCLUSIVE": "off"},
)


@in_cases({str(setting): setting for setting in UNASKED}, **TELLS)
def test_nothing_is_registered_if_nobody_needs_it(mgpu: Mgpu, _: str) -> None:
    Loop(mgpu).run(3)
    assert mgpu.stub.hipstub_registrations() == 0


@in_child(**TELLS)
def test_the_first_graph_ends_it_and_removes_the_function(mgpu: Mgpu) -> None:
    """HIP 7.2.4 sometimes crashes if a graph runs while HIP has any function to report to."""
    begin(mgpu)
    stream = mgpu.StreamCreate()
    before = mgpu.stub.hipstub_registrations()
    assert mgpu.lib.mgpu_rt_graph_begin() == 0
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.Memset32(block, 1, KIB // 4, stream)
    graph = mgpu.lib.mgpu_rt_graph_end()
    assert graph != mgpu.ffi.NULL
    assert mgpu.stub.hipstub_registrations() == before + 1
    assert mgpu.lib.mgpu_rt_graph_launch(graph, stream) == 0
    mgpu.lib.mgpu_rt_graph_destroy(graph)
    assert mgpu.stub.hipstub_registrations() == before + 1
    assert not Loop(mgpu).is_sole_user()


@in_cases(("hipDeviceReset", "hipStreamDestroy"), **TELLS)
def test_a_call_after_which_hip_may_crash_removes_the_function(mgpu: Mgpu, name: str) -> None:
    """While HIP 7.2.4 has any function to report to, it reads a stream at the end of a wait for an
    event. By then other code may have destroyed the stream, or reset the device."""
    begin(mgpu)
    for _ in range(2):
        arguments = [mgpu.for_stub(mgpu.hip_stream())] if name == "hipStreamDestroy" else []
        assert getattr(mgpu.stub, name)(*arguments) == 0
        assert mgpu.stub.hipstub_registrations() == 2
    assert mgpu.StreamCreate() != mgpu.null
    assert mgpu.stub.hipstub_registrations() == 2


@in_child(**{**TELLS, "HIPSTUB_VERSION": "60443484"})
def test_before_hip_7_the_function_outlives_a_stream(mgpu: Mgpu) -> None:
    begin(mgpu)
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(mgpu.hip_stream())) == 0
    assert mgpu.stub.hipstub_registrations() == 1


# ---- where other code calls HIP ----


@in_child(**TELLS)
def test_a_second_copy_of_the_library_ends_it(mgpu: Mgpu) -> None:
    """The second copy finds that HIP is in use, so the copy registers nothing."""
    loop = begin(mgpu)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(library(), Path(folder, "copy.so"))
        other = mgpu.ffi.dlopen(str(copy))
    stream = other.mgpuStreamCreate()
    other.mgpuStreamDestroy(stream)
    assert not loop.is_sole_user()
    assert mgpu.stub.hipstub_registrations() == 1
    assert mgpu.stub.hipstub_misuse() == 0
