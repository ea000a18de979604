"""Synchronisation: the library does not wait again for work that it knows to be finished; lazy mode
postpones other waits."""

from __future__ import annotations

from tests.support.child import Mgpu, in_cases, in_child
from tests.support.images import code_object
from tests.support.known import forum

KIB = 1 << 10
SYNC = "hipStreamSynchronize"


# ---- strict: only the number of queries changes --------------------------------------------------


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_each_kind_of_work_is_waited_for(mgpu: Mgpu) -> None:
    function, stream = forum(mgpu), mgpu.StreamCreate()
    block, other = (mgpu.MemAlloc(KIB, stream, False) for _ in range(2))
    event, data = mgpu.EventCreate(), mgpu.ffi.new("char[]", KIB)
    mgpu.EventRecord(event, stream)
    mgpu.StreamSynchronize(stream)
    work = [
        lambda: mgpu.launch(function, stream),
        lambda: mgpu.Memset32(block, 1, 256, stream),
        lambda: mgpu.Memset16(block, 1, 512, stream),
        lambda: mgpu.Memcpy(other, block, KIB, stream),
        lambda: mgpu.Memcpy(block, data, KIB, stream),
        lambda: mgpu.EventRecord(event, stream),
        lambda: mgpu.StreamWaitEvent(stream, event),
    ]
    for submit in work:
        before = mgpu.count(SYNC)
        submit()
        mgpu.StreamSynchronize(stream)
        assert mgpu.count(SYNC) == before + 1
        mgpu.StreamSynchronize(stream)
        assert mgpu.count(SYNC) == before + 1


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_a_second_destroy_is_reported(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    assert mgpu.stderr() == ""
    mgpu.StreamDestroy(stream)
    assert "was destroyed before" in mgpu.stderr()


@in_child(backends=("softgpu",))
def test_a_synchronise_of_no_stream_blames_no_earlier_work(mgpu: Mgpu) -> None:
    mgpu.StreamCreate()
    mgpu.StreamSynchronize(mgpu.ffi.cast("void *", 0x1234))
    assert "HIP knows no stream with the handle 0x1234" in mgpu.stderr()
    assert "earlier work" not in mgpu.stderr()


@in_child(MGPU_RT_EXCLUSIVE="on", HIPSTUB_FAULT=f"{SYNC}:1:700")
def test_a_synchronise_after_an_error_asks_hip_again(mgpu: Mgpu) -> None:
    function, stream = forum(mgpu), mgpu.StreamCreate()
    mgpu.launch(function, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.count(SYNC) == 2


# ---- lazy ----------------------------------------------------------------------------------------

LAZY = {"MGPU_RT_SYNC": "lazy", "MGPU_RT_EXCLUSIVE": "on"}


def loop(mgpu: Mgpu, function, iterations: int = 5):
    """Makes LLVM 22's calls for a synchronous launch."""
    for _ in range(iterations):
        stream = mgpu.StreamCreate()
        mgpu.launch(function, stream)
        mgpu.StreamSynchronize(stream)
        mgpu.StreamDestroy(stream)
    return stream


#: Whether lazy waits at each synchronise. Lazy waits where other code calls HIP, where a kernel
#: reaches the host's memory, and where the host may read the device's memory. HIP 5 reports a large
#: BAR only in the device's properties.
WAITS = {
    "launches": ({}, False),
    "others": ({"MGPU_RT_EXCLUSIVE": "off"}, True),
    "pageable": ({"HIPSTUB_PAGEABLE": "1"}, True),
    "bar": ({"HIPSTUB_VISIBLE": "bar"}, True),
    "bar-7": ({"HIPSTUB_VISIBLE": "bar", "HIPSTUB_VERSION": "70200000"}, True),
    "no-bar-7": ({"HIPSTUB_VERSION": "70200000"}, False),
    "integrated": ({"HIPSTUB_VISIBLE": "integrated"}, True),
    "no-answer": ({"HIPSTUB_FAULT": "hipGetDeviceProperties:*:1"}, True),
}


@in_cases({case: {**LAZY, "MGPU_RT_STATS": "/dev/null", **env} for case, (env, _) in WAITS.items()})
def test_lazy_waits(mgpu: Mgpu, case: str) -> None:
    loop(mgpu, forum(mgpu))
    assert mgpu.count(SYNC) == 5 - mgpu.stats()["postponed"] == (5 if WAITS[case][1] else 0)
    assert mgpu.count("hipStreamCreate") == 1


@in_child(**LAZY, HIPSTUB_VISIBLE="bar", MGPU_RT_VERBOSE="1")
def test_the_library_says_that_lazy_has_no_effect(mgpu: Mgpu) -> None:
    loop(mgpu, forum(mgpu))
    said = "=lazy waits at each synchronise: device 0 and the host may access each other's memory ("
    assert mgpu.stderr().count(said) == 1


@in_cases(("registered", "shared"), **LAZY, MGPU_RT_VERBOSE="1")
def test_lazy_waits_where_the_host_shares_memory(mgpu: Mgpu, how: str) -> None:
    function, data = forum(mgpu), mgpu.ffi.new("char[]", KIB)
    if how == "registered":
        mgpu.MemHostRegister(data, KIB)
    else:
        data = mgpu.MemAlloc(KIB, mgpu.null, True)
    loop(mgpu, function)
    assert mgpu.count(SYNC) == 5
    said = "=lazy waits at each synchronise while kernels can write memory of the host"
    assert mgpu.stderr().count(said) == 1
    mgpu.MemHostUnregister(data) if how == "registered" else mgpu.MemFree(data, mgpu.null)
    loop(mgpu, function)
    assert mgpu.count(SYNC) == 5


@in_child(**LAZY)
def test_lazy_waits_for_kernels_that_print(mgpu: Mgpu) -> None:
    """If a kernel prints, the metadata of its image contain the name of HIP's print buffer."""
    image = code_object("forum") + b"hidden_hostcall_buffer"
    head = bytearray(image)
    note = image.find(b"amdhsa.")
    head[note : note + 8] = b"hostcall"
    function = mgpu.function(mgpu.load(mgpu.image(bytes(head))), "test_func")
    loop(mgpu, function)
    assert mgpu.count(SYNC) == 5


@in_child(**LAZY, HIPSTUB_ASYNC="held")
def test_work_on_another_stream_waits_for_a_deferred_wait(mgpu: Mgpu) -> None:
    """The program believes that the first launch is done, so the second launch may use the results
    of the first launch."""
    function, stream = forum(mgpu), mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    for submit in (
        lambda: mgpu.launch(function, mgpu.null),
        lambda: mgpu.Memset32(block, 1, 256, mgpu.null),
        lambda: mgpu.StreamSynchronize(mgpu.null),
        mgpu.StreamCreate,
    ):
        mgpu.launch(function, stream)
        mgpu.StreamSynchronize(stream)
        assert mgpu.pending(stream) == 1
        submit()
        assert mgpu.pending(stream) == 0


@in_child(**LAZY, HIPSTUB_ASYNC="held", MGPU_RT_VERBOSE="1")
def test_two_concurrent_streams_stay_concurrent(mgpu: Mgpu) -> None:
    """The library makes a postponed wait before it submits further work to the stream, not
    afterwards."""
    function = forum(mgpu)
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    for _ in range(3):
        mgpu.launch(function, second)
        mgpu.launch(function, first)
        assert mgpu.pending(first) == mgpu.pending(second) == 1
        mgpu.StreamSynchronize(first)
        mgpu.StreamSynchronize(second)
    assert mgpu.stderr().count("several streams: from now on MGPU_RT_SYNC=lazy waits") == 1


@in_child(**LAZY, HIPSTUB_ASYNC="held")
def test_a_destroyed_stream_with_later_work_is_busy(mgpu: Mgpu) -> None:
    """The library has postponed a wait, and the program has then submitted more work. The next
    owner of the stream must not wait for the first owner's work."""
    function, stream = forum(mgpu), mgpu.StreamCreate()
    mgpu.launch(function, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.launch(function, stream)
    mgpu.StreamDestroy(stream)
    assert mgpu.pending(stream) == 2
    created = mgpu.StreamCreate()
    assert created != stream or mgpu.pending(stream) == 0


@in_child(**LAZY, HIPSTUB_FAULT=f"{SYNC}:1:700")
def test_the_next_wait_reports_a_fault(mgpu: Mgpu) -> None:
    function = forum(mgpu)
    loop(mgpu, function)
    assert mgpu.stderr() == ""
    mgpu.lib.mgpu_rt_empty_cache()
    assert "'hipStreamSynchronize(stream)' failed with" in mgpu.stderr()
