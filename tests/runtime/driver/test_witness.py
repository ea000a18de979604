"""Tests that the library learns from HIP who calls it, and leaves out queries only while no other
code has called HIP.

The stub reports calls with HIPSTUB_TELLS=1, as AMD's HIP does from 5.3 on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from tests.support.child import Mgpu, in_cases, in_child, library
from tests.support.images import code_object
from tests.support.known import KERNEL

KIB = 1 << 10
#: HIP 7, because its rules for the last error let hipPeekAtLastError be the probe.
TELLS = {"HIPSTUB_TELLS": "1", "HIPSTUB_REUSE": "1", "HIPSTUB_VERSION": "70253211"}
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


@in_child(**{**TELLS, "HIPSTUB_VERSION": "60443484"})
def test_up_to_hip_6_the_probe_clears_the_last_error_as_a_query_does(mgpu: Mgpu) -> None:
    begin(mgpu)
    assert mgpu.stub.hipSetDevice(5) != 0  # a call that leaves an error, and changes nothing
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.stub.hipGetLastError() == 0
    assert mgpu.stderr() == ""


@in_child(**TELLS)
def test_from_hip_7_on_the_probe_leaves_the_last_error(mgpu: Mgpu) -> None:
    begin(mgpu)
    error = mgpu.stub.hipSetDevice(5)
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.stub.hipGetLastError() == error != 0


def calls(mgpu: Mgpu) -> dict[str, Callable[[], object]]:
    """Returns calls of other code that may change HIP's objects."""
    stub, null = mgpu.stub, mgpu.stub_ffi.NULL
    place, size = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("size_t[2]")
    return {
        "hipMalloc": lambda: stub.hipMalloc(place, KIB),
        "hipFree": lambda: stub.hipFree(null),
        "hipMemGetInfo": lambda: stub.hipMemGetInfo(size, size + 1),
        "hipStreamCreate": lambda: stub.hipStreamCreate(place),
        "hipStreamSynchronize": lambda: stub.hipStreamSynchronize(null),
        "hipEventCreate": lambda: stub.hipEventCreate(place),
        "hipDeviceSynchronize": stub.hipDeviceSynchronize,
        "hipHostRegister": lambda: stub.hipHostRegister(place, 8, 0),
        "hipModuleUnload": lambda: stub.hipModuleUnload(null),
        "hipMemset": lambda: stub.hipMemset(null, 0, 0),
    }


OTHERS = (
    *("hipMalloc", "hipFree", "hipMemGetInfo", "hipStreamCreate", "hipStreamSynchronize"),
    *("hipEventCreate", "hipDeviceSynchronize", "hipHostRegister", "hipModuleUnload", "hipMemset"),
)


@in_cases({name + thread: {} for name in OTHERS for thread in ("", " on a thread")}, **TELLS)
def test_a_call_of_other_code_ends_it(mgpu: Mgpu, case: str) -> None:
    loop = begin(mgpu)
    name, _, thread = case.partition(" ")
    call = calls(mgpu)[name]
    if thread:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    else:
        call()
    assert not loop.is_sole_user()
    assert mgpu.stub.hipstub_registrations() == 1


@in_child(**TELLS)
def test_calls_that_change_nothing_do_not_end_it(mgpu: Mgpu) -> None:
    loop = begin(mgpu)
    stub, number = mgpu.stub, mgpu.stub_ffi.new("int *")
    for call in (
        *(lambda: stub.hipGetDevice(number), lambda: stub.hipGetDeviceCount(number)),
        *(lambda: stub.hipSetDevice(0), lambda: stub.hipRuntimeGetVersion(number)),
        *(stub.hipGetLastError, stub.hipPeekAtLastError, lambda: stub.hipInit(0)),
    ):
        call()
        assert loop.is_sole_user()


# ---- what other code may do to the library's objects ----


@in_child(**TELLS)
def test_a_reset_is_seen(mgpu: Mgpu) -> None:
    loop = begin(mgpu)
    assert mgpu.stub.hipDeviceReset() == 0
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(own, loop.size) == 0  # perhaps at the block's address
    assert mgpu.stub.hipStreamCreate(own) == 0
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_cached()  # the library has noticed the reset
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


@in_child(**TELLS)
def test_a_block_that_other_code_has_freed_is_not_kept(mgpu: Mgpu) -> None:
    begin(mgpu)
    size = 4 * KIB
    block = mgpu.replaced(lambda: mgpu.MemAlloc(size, mgpu.null, False), mgpu.stub.hipMalloc, size)
    before = mgpu.count("hipFree")
    mgpu.MemFree(block, mgpu.null)
    assert mgpu.count("hipFree") == before + 1
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(**TELLS)
def test_a_stream_that_other_code_has_made_is_not_kept(mgpu: Mgpu) -> None:
    non_blocking = 1
    begin(mgpu)
    for held in (1, 2):  # the thread's last stream, or another one
        ours = mgpu.StreamCreate()
        others = [mgpu.StreamCreate() for _ in range(1, held)]
        assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
        own = mgpu.stub_ffi.new("void **")
        mgpu.stub.hipStreamCreateWithFlags(own, non_blocking)
        assert mgpu.from_stub(own[0]) == ours
        before = mgpu.stub.hipstub_live(b"streams")
        mgpu.StreamDestroy(ours)
        assert mgpu.stub.hipstub_live(b"streams") == before - 1
        for stream in others:
            mgpu.StreamDestroy(stream)


@in_child(**TELLS, HIPSTUB_ASYNC="held")
def test_a_stream_with_work_of_other_code_is_not_handed_out(mgpu: Mgpu) -> None:
    streams = [mgpu.StreamCreate() for _ in range(2)]  # the thread's last stream, and another one
    block = mgpu.stub_ffi.new("void **")
    for stream in streams:
        mgpu.StreamDestroy(stream)
    assert mgpu.stub.hipMalloc(block, KIB) == 0
    for stream in streams:
        handle = mgpu.for_stub(stream)
        assert mgpu.stub.hipMemsetAsync(block[0], 1, KIB, handle) == 0
    assert mgpu.StreamCreate() not in streams
    for stream in streams:
        assert mgpu.stub.hipStreamSynchronize(mgpu.for_stub(stream)) == 0


# ---- the callback ----


@in_cases({"in use": {}, "ended": {}}, **TELLS, MGPU_RT_VERBOSE="1")
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
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(own, loop.size) == 0  # perhaps at the block's address
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_cached()  # the library has noticed the reset
    assert mgpu.stub.hipstub_misuse() == 0
    assert (len(reports) > 10) == (not ended)  # the profiler gets all reports
    assert mgpu.stub.hipstub_registrations() == 2 + ended
    mgpu.stub.hipRegisterTracerCallback(mgpu.stub_ffi.NULL)
    assert mgpu.stderr().count("HIP no longer reports calls to this library") == 1


@in_child(**{**TELLS, "HIPSTUB_TELLS": "0"})
def test_a_hip_that_does_not_report_is_queried(mgpu: Mgpu) -> None:
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_sole_user()
    assert mgpu.stub.hipstub_registrations() == 1
    assert mgpu.count(PROBE) == 1  # the first probe shows it


@in_child(**TELLS)
def test_queries_remain_if_hip_was_used_before(mgpu: Mgpu) -> None:
    """HIP does not report what happened before the registration."""
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(own, KIB) == 0
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_sole_user()
    assert mgpu.stub.hipstub_registrations() == 0


@in_child(**TELLS, GPU_CLR_PROFILE="1")
def test_a_profiler_of_hip_keeps_the_reports(mgpu: Mgpu) -> None:
    loop = Loop(mgpu)
    loop.run(3)
    assert not loop.is_sole_user()
    assert mgpu.stub.hipstub_registrations() == 0


UNASKED = (
    {"MGPU_RT_CACHE": "off"},
    {"MGPU_RT_EXCLUSIVE": "off"},
    {"MGPU_RT_EXCLUSIVE": "on"},
)


@in_cases({str(setting): setting for setting in UNASKED}, **TELLS)
def test_nothing_is_registered_if_nobody_needs_it(mgpu: Mgpu, _: str) -> None:
    Loop(mgpu).run(3)
    assert mgpu.stub.hipstub_registrations() == 0


@in_child(**TELLS, MGPU_RT_STATS="0")
def test_statistics_without_a_record_say_nothing_of_other_code(mgpu: Mgpu) -> None:
    begin(mgpu)
    assert mgpu.stats()["other_calls"] is None


@in_child(**TELLS, MGPU_RT_STATS="/dev/null")
def test_statistics_name_the_first_call_of_other_code(mgpu: Mgpu) -> None:
    begin(mgpu)
    assert mgpu.stats()["other_calls"] == "none"
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(own, KIB) == 0
    assert mgpu.stub.hipFree(own[0]) == 0
    assert mgpu.stats()["other_calls"] == "hipMalloc was the first"


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


@in_child(**TELLS)
def test_a_call_in_a_forked_child_is_seen_there(mgpu: Mgpu) -> None:
    """The child is forked before the library's first call, because HIP does not survive a fork."""
    child = os.fork()
    if not child:
        status = 1
        try:
            loop = begin(mgpu)
            assert mgpu.stub.hipDeviceReset() == 0
            loop = Loop(mgpu)
            loop.run(3)
            assert not loop.is_cached()  # the library has noticed the reset
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    begin(mgpu)  # the parent is still the sole user
