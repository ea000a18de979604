"""Scratch buffers are allocated lazily, grow on demand, can be moved, and survive a failed
growth."""

from __future__ import annotations

from typing import Any

from tests.support.child import Mgpu, in_child

KIB = 1 << 10


def owner(mgpu: Mgpu, stream: Any = None) -> Any:
    """Returns an empty struct mgpu_rt_scratch of a stream."""
    made = mgpu.ffi.new("struct mgpu_rt_scratch *")
    made.stream = mgpu.null if stream is None else stream
    return made


@in_child()
def test_a_buffer_is_allocated_at_first_use_and_kept(mgpu: Mgpu) -> None:
    scratch = owner(mgpu)
    assert mgpu.count("hipMalloc") == 0
    place = mgpu.lib.mgpu_rt_scratch_reserve(scratch, KIB)
    assert {mgpu.lib.mgpu_rt_scratch_reserve(scratch, size) for size in (1, 100, KIB, 0)} == {place}
    assert mgpu.count("hipMalloc") == 1
    mgpu.lib.mgpu_rt_scratch_release(scratch)
    assert (scratch.data, scratch.capacity) == (mgpu.null, 0)
    assert mgpu.count("hipFree") == 0  # in the cache now


@in_child(HIPSTUB_ASYNC="held")
def test_a_buffer_grows_in_the_order_of_its_stream(mgpu: Mgpu) -> None:
    """After a growth, work on the stream may still use the smaller block, so only that stream may
    reuse the block at once."""
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    scratch = owner(mgpu, first)
    small = mgpu.lib.mgpu_rt_scratch_reserve(scratch, KIB)
    mgpu.Memset32(small, 1, 256, first)
    assert mgpu.lib.mgpu_rt_scratch_reserve(scratch, 64 * KIB) != small
    assert mgpu.MemAlloc(KIB, second, False) != small
    assert mgpu.MemAlloc(KIB, first, False) == small
    mgpu.lib.mgpu_rt_scratch_release(scratch)
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(HIPSTUB_FAULT="hipMalloc:2:2,hipMalloc:3:2")
def test_a_buffer_that_cannot_grow_stays(mgpu: Mgpu) -> None:
    scratch = owner(mgpu)
    place = mgpu.lib.mgpu_rt_scratch_reserve(scratch, KIB)
    assert mgpu.lib.mgpu_rt_scratch_reserve(scratch, 64 * KIB) == mgpu.null
    assert (scratch.data, scratch.capacity) == (place, KIB)
    assert mgpu.lib.mgpu_rt_scratch_reserve(scratch, KIB) == place
    assert mgpu.lib.mgpu_rt_scratch_reserve(scratch, 64 * KIB)


@in_child()
def test_a_buffer_can_be_moved(mgpu: Mgpu) -> None:
    """A move frees the buffer of the target."""
    stream = mgpu.StreamCreate()
    to, source = owner(mgpu, stream), owner(mgpu, stream)
    old, new = (mgpu.lib.mgpu_rt_scratch_reserve(each, KIB) for each in (to, source))
    mgpu.lib.mgpu_rt_scratch_move(to, source)
    mgpu.lib.mgpu_rt_scratch_move(to, to)
    assert (source.data, source.capacity) == (mgpu.null, 0)
    assert (to.data, to.capacity) == (new, KIB)
    assert mgpu.MemAlloc(KIB, stream, False) == old
    for scratch in (to, source, source):
        mgpu.lib.mgpu_rt_scratch_release(scratch)
    assert mgpu.stderr() == ""
