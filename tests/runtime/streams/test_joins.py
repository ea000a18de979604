"""Tests which work a stream follows after it has waited for an event (streams/joins.h)."""

from __future__ import annotations

import threading
import time

from tests.support import known
from tests.support.child import Mgpu, in_cases, in_child

KIB = 1 << 10
MOST_JOINS = 8
HELD = {"HIPSTUB_ASYNC": "held"}
WORD = {**HELD, "MGPU_RT_EXCLUSIVE": "on"}
#: HIP reports each call of other code, as AMD's HIP from 5.3 on.
TELLS = {**HELD, "HIPSTUB_TELLS": "1", "HIPSTUB_VERSION": "70253211"}
#: HIP destroys a stream without a wait, and uses the handle again.
RENEWED = {"HIPSTUB_DESTROY_RETURNS": "1", "HIPSTUB_REUSE": "1", "MGPU_RT_STREAM_LIMIT": "0"}


def alloc(mgpu: Mgpu, stream):
    return known.alloc(mgpu, KIB, stream)


def work(mgpu: Mgpu, block, stream) -> None:
    mgpu.Memset32(block, 7, KIB // 4, stream)


def freed_at_work(mgpu: Mgpu, stream):
    """Returns a block that was freed on a stream, which still works on the block."""
    block = alloc(mgpu, stream)
    work(mgpu, block, stream)
    mgpu.MemFree(block, stream)
    return block


def recorded(mgpu: Mgpu, stream):
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, stream)
    return event


def join(mgpu: Mgpu, by, stream) -> None:
    """Makes the work of `by` follow the work of `stream`, as lowered programs do."""
    event = recorded(mgpu, stream)
    mgpu.StreamWaitEvent(by, event)
    mgpu.EventDestroy(event)


def questions(mgpu: Mgpu) -> int:
    return mgpu.count("hipStreamQuery") + mgpu.count("hipEventQuery")


# ---- what a join proves --------------------------------------------------------------------------


#: The user's word that no other code calls HIP, and HIP's reports that none has.
ALONE = {"word": WORD, "tells": TELLS}


@in_cases(ALONE)
def test_the_stream_that_joins_gets_the_memory_at_once(mgpu: Mgpu, _: str) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = freed_at_work(mgpu, first)
    join(mgpu, second, first)
    assert alloc(mgpu, second) == block
    assert mgpu.pending(first) > 0
    assert questions(mgpu) == 0


@in_child(**WORD)
def test_a_join_of_a_join_counts(mgpu: Mgpu) -> None:
    first, second, third = (mgpu.StreamCreate() for _ in range(3))
    block = freed_at_work(mgpu, first)
    join(mgpu, second, first)
    join(mgpu, third, second)
    assert alloc(mgpu, third) == block
    assert questions(mgpu) == 0


@in_child(**WORD)
def test_a_stream_joins_two_streams(mgpu: Mgpu) -> None:
    streams = [mgpu.StreamCreate() for _ in range(3)]
    blocks = {freed_at_work(mgpu, stream) for stream in streams[:2]}
    for stream in streams[:2]:
        join(mgpu, streams[2], stream)
    asked = questions(mgpu)
    assert {alloc(mgpu, streams[2]) for _ in range(2)} == blocks
    assert questions(mgpu) == asked


@in_child(**WORD)
def test_a_stream_keeps_its_newest_joins(mgpu: Mgpu) -> None:
    """One more stream joins than csrc/runtime/streams/joins.c keeps."""
    first, *others = (mgpu.StreamCreate() for _ in range(MOST_JOINS + 2))
    block = freed_at_work(mgpu, first)
    for other in others:
        join(mgpu, other, first)
    assert alloc(mgpu, others[0]) != block
    asked = questions(mgpu)
    assert asked > 0
    assert alloc(mgpu, others[1]) == block
    assert questions(mgpu) == asked


@in_child(**WORD)
def test_memory_that_is_freed_after_the_join_waits_for_no_joined_stream(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = alloc(mgpu, first)
    work(mgpu, block, first)
    join(mgpu, second, first)
    mgpu.MemFree(block, second)
    assert alloc(mgpu, second) == block
    assert questions(mgpu) == 0


@in_child(**WORD)
def test_a_wait_for_the_stream_that_joined_proves_the_joined_stream(mgpu: Mgpu) -> None:
    first, second, third = (mgpu.StreamCreate() for _ in range(3))
    block = freed_at_work(mgpu, first)
    join(mgpu, second, first)
    assert alloc(mgpu, third) != block
    asked = questions(mgpu)
    mgpu.StreamSynchronize(second)
    assert alloc(mgpu, third) == block
    assert questions(mgpu) == asked


@in_child(**TELLS)
def test_a_wait_for_the_event_proves_the_stream(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = freed_at_work(mgpu, first)
    mgpu.EventSynchronize(recorded(mgpu, first))
    assert alloc(mgpu, second) == block
    assert questions(mgpu) == 0


# ---- what proves nothing -------------------------------------------------------------------------


@in_child(**WORD)
def test_a_record_that_overlaps_a_wait_proves_nothing(mgpu: Mgpu) -> None:
    """While one thread is inside the wait, another thread records the event on a third stream. HIP
    then waits for the third stream."""
    first, second, third = (mgpu.StreamCreate() for _ in range(3))
    block = freed_at_work(mgpu, first)
    event = recorded(mgpu, first)
    mgpu.stub.hipstub_set_delay(b"hipStreamWaitEvent:2000000")  # a loaded machine is slow
    waits = threading.Thread(target=lambda: mgpu.StreamWaitEvent(second, event))
    waits.start()
    while mgpu.count("hipStreamWaitEvent") == 0:
        time.sleep(0.001)
    mgpu.EventRecord(event, third)
    waits.join()
    assert alloc(mgpu, second) != block


@in_child(**WORD, **RENEWED)
def test_a_new_stream_has_joined_nothing(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = freed_at_work(mgpu, first)
    join(mgpu, second, first)
    mgpu.StreamDestroy(second)
    assert mgpu.StreamCreate() == second
    assert alloc(mgpu, second) != block


@in_child(**WORD, **RENEWED)
def test_a_record_from_before_a_streams_end_does_not_cover_the_next_stream(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    work(mgpu, alloc(mgpu, first), first)
    event = recorded(mgpu, first)
    mgpu.StreamDestroy(first)
    assert mgpu.StreamCreate() == first
    block = freed_at_work(mgpu, first)
    mgpu.StreamWaitEvent(second, event)
    assert alloc(mgpu, second) != block


@in_child(**WORD, HIPSTUB_REUSE="1")
def test_a_new_event_has_no_record(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = freed_at_work(mgpu, first)
    event = recorded(mgpu, first)
    mgpu.EventDestroy(event)
    assert mgpu.EventCreate() == event
    mgpu.StreamWaitEvent(second, event)
    assert alloc(mgpu, second) != block


@in_child(**TELLS)
def test_work_of_other_code_after_the_join_is_waited_for(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = alloc(mgpu, first)
    work(mgpu, block, first)
    join(mgpu, second, first)
    assert mgpu.stub.hipMemsetAsync(mgpu.for_stub(block), 8, KIB, mgpu.for_stub(first)) == 0
    mgpu.MemFree(block, second)
    assert alloc(mgpu, second) != block


@in_child(**WORD)
def test_nothing_is_proven_while_a_stream_may_be_captured(mgpu: Mgpu) -> None:
    """A stream that waits for an event of a captured stream joins the capture. Its records then run
    with the graph."""
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = freed_at_work(mgpu, first)
    mgpu.external_stream()
    join(mgpu, second, first)
    assert alloc(mgpu, second) != block


@in_child(**WORD)
def test_the_null_stream_joins_nothing(mgpu: Mgpu) -> None:
    """HIP orders the null stream's work and the work of other streams."""
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = freed_at_work(mgpu, first)
    event = recorded(mgpu, mgpu.null)
    mgpu.StreamWaitEvent(second, event)
    assert alloc(mgpu, second) != block
