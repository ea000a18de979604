"""Tests which handles the library takes for events of the program (states: shared/types.h)."""

from __future__ import annotations

from tests.support.child import BACKENDS, Mgpu, in_child
from tests.support.known import forum


@in_child(backends=BACKENDS)
def test_events_outlive_a_reset(mgpu: Mgpu) -> None:
    """HIP keeps events at a reset. Other events are made before the library notices the reset."""
    mgpu.EventElapsedTime(mgpu.null, mgpu.null, mgpu.null)
    mgpu.StreamDestroy(mgpu.StreamCreate())
    pairs = [(mgpu.EventCreate(), mgpu.EventCreate())]
    mgpu.stub.hipDeviceReset()
    pairs.append((mgpu.EventCreate(), mgpu.EventCreate()))
    stream = mgpu.StreamCreate()  # notices it
    for start, stop in pairs:
        mgpu.EventRecord(start, stream)
        mgpu.EventRecord(stop, stream)
        mgpu.EventSynchronize(stop)
        assert mgpu.EventElapsedTime(start, stop, mgpu.null).error == 0
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_ASYNC="held")
def test_an_event_that_the_program_records_by_hip_itself_passes_no_mark(mgpu: Mgpu) -> None:
    """By calling HIP, the program has recorded the event again, on an idle stream. So HIP waits
    only for the idle stream, while the first stream has pending work."""
    function = forum(mgpu)
    first, second, third = (mgpu.StreamCreate() for _ in range(3))
    block = mgpu.MemAlloc(4096, first, False)
    mgpu.launch(function, first)
    mgpu.MemFree(block, first)
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, first)
    assert mgpu.stub.hipEventRecord(mgpu.for_stub(event), mgpu.for_stub(second)) == 0
    mgpu.EventSynchronize(event)
    assert mgpu.stub.hipstub_pending(first) > 0
    assert mgpu.MemAlloc(4096, third, False) != block
    mgpu.StreamSynchronize(first)
    assert mgpu.MemAlloc(4096, third, False) == block
