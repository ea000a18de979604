"""Scratch buffers are allocated lazily, grow on demand, can be moved but not copied, and survive a
failed growth."""

from __future__ import annotations

import copy

import pytest

from mgpu_rt._library import RuntimeLibrary
from tests.support.child import Mgpu, in_child, library

KIB = 1 << 10


@in_child()
def test_a_buffer_is_allocated_at_first_use_and_kept(mgpu: Mgpu) -> None:
    with RuntimeLibrary(str(library())).scratch() as scratch:
        assert (scratch.address, scratch.capacity) == (0, 0)
        assert mgpu.count("hipMalloc") == 0
        address = scratch.reserve(KIB)
        assert {scratch.reserve(size) for size in (1, 100, KIB, 0)} == {address}
        assert mgpu.count("hipMalloc") == 1
    assert (scratch.address, scratch.capacity) == (0, 0)
    assert mgpu.count("hipFree") == 0  # in the cache now


@in_child(HIPSTUB_ASYNC="held")
def test_a_buffer_grows_in_the_order_of_its_stream(mgpu: Mgpu) -> None:
    """After a growth, work on the stream may still use the smaller block, so only that stream may
    reuse the block at once."""
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    runtime = RuntimeLibrary(str(library()))
    with runtime.scratch(int(mgpu.ffi.cast("uintptr_t", first))) as scratch:
        small = mgpu.ffi.cast("void *", scratch.reserve(KIB))
        mgpu.Memset32(small, 1, 256, first)
        assert scratch.reserve(64 * KIB) != int(mgpu.ffi.cast("uintptr_t", small))
        assert mgpu.MemAlloc(KIB, second, False) != small
        assert mgpu.MemAlloc(KIB, first, False) == small
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(HIPSTUB_FAULT="hipMalloc:2:2,hipMalloc:3:2")
def test_a_buffer_that_cannot_grow_stays(mgpu: Mgpu) -> None:
    scratch = RuntimeLibrary(str(library())).scratch()
    address = scratch.reserve(KIB)
    with pytest.raises(MemoryError, match="no device memory for 65536 bytes"):
        scratch.reserve(64 * KIB)
    assert (scratch.address, scratch.capacity) == (address, KIB)
    assert scratch.reserve(KIB) == address
    assert scratch.reserve(64 * KIB)


@in_child()
def test_a_buffer_can_be_moved(mgpu: Mgpu) -> None:
    first = RuntimeLibrary(str(library())).scratch()
    address = first.reserve(KIB)
    second = first.move()
    assert (first.address, first.capacity) == (0, 0)
    assert (second.address, second.capacity) == (address, KIB)
    assert first.reserve(KIB) != address
    first.release()
    second.release()
    second.release()
    assert mgpu.stderr() == ""


@in_child()
def test_a_move_frees_the_buffer_of_the_target(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    to, source = (mgpu.ffi.new("struct mgpu_rt_scratch *") for _ in range(2))
    to.stream = source.stream = stream
    old, new = (mgpu.lib.mgpu_rt_scratch_reserve(owner, KIB) for owner in (to, source))
    mgpu.lib.mgpu_rt_scratch_move(to, source)
    mgpu.lib.mgpu_rt_scratch_move(to, to)
    assert (to.data, source.data) == (new, mgpu.null)
    assert mgpu.MemAlloc(KIB, stream, False) == old


@in_child()
def test_a_buffer_is_never_copied(mgpu: Mgpu) -> None:
    scratch = RuntimeLibrary(str(library())).scratch()
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="one owner"):
            duplicate(scratch)
