"""When the cache hands out freed memory again, and how much freed memory stays cached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import instructions
from tests.support.child import Mgpu, environment, in_child, library
from tests.support.known import forum, program

KIB, MIB = 1 << 10, 1 << 20


def alloc(mgpu: Mgpu, size: int, stream):
    block = mgpu.MemAlloc(size, stream, False)
    assert block != mgpu.null
    return block


def at_work(mgpu: Mgpu, block, size: int):
    """Returns a new stream that is working on a block."""
    stream = mgpu.StreamCreate()
    mgpu.Memset32(block, 0x07070707, size // 4, stream)
    return stream


# ---- for what a block waits ----


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_TELLS="1", HIPSTUB_VERSION="70253211")
def test_without_other_code_a_synchronise_before_the_free_counts(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = alloc(mgpu, KIB, first)
    mgpu.Memset32(block, 7, KIB // 4, first)
    mgpu.StreamSynchronize(first)
    mgpu.MemFree(block, first)
    assert mgpu.MemAlloc(KIB, second, False) == block
    assert mgpu.count("hipStreamQuery") == 0


# ---- a free checks the streams ----

#: The program creates and destroys GONE streams. In each iteration the program then allocates and
#: frees ten blocks on three other streams.
FREES = """
#include "program.h"
int main(void) {
    void *before[500], *streams[3];
    const int gone = atoi(getenv("GONE"));
    int calls = 0;
    if (scanf("%d", &calls) != 1)
        return 1;
    for (int i = 0; i < gone; i++)
        before[i] = mgpuStreamCreate();
    for (int i = 0; i < gone; i++)
        mgpuStreamDestroy(before[i]);
    for (int i = 0; i < 3; i++)
        streams[i] = mgpuStreamCreate();
    for (int i = 0; i < 10 * calls; i++)
        mgpuMemFree(mgpuMemAlloc(4096, streams[0], 0), streams[0]);
    return 0;
}
"""


@pytest.mark.skipif(not instructions.available(), reason="valgrind is missing")
def test_a_free_queries_no_stream_that_hip_destroyed(tmp_path: Path) -> None:
    path = program(tmp_path, FREES)
    variables = {"MGPU_RT_MANAGER": "off", "MGPU_RT_STREAM_LIMIT": "0", "HIPSTUB_MODE": "fast"}

    def count(gone: int) -> float:
        env = environment(GONE=str(gone), **variables)
        env["LD_LIBRARY_PATH"] = str(Path(env["MGPU_RT_HIP"]).parent)
        return instructions.count_program(path, 10, env).per_iteration(library().name)

    assert 100 < count(500) == count(0)


@in_child(HIPSTUB_ASYNC="held")
def test_a_wait_for_the_device_covers_streams_that_hip_destroyed(mgpu: Mgpu) -> None:
    """The program has destroyed the streams by calling HIP. The library reuses the block only after
    a wait for the device. A wait for the device also covers work of destroyed streams."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    others = [at_work(mgpu, block, KIB) for _ in range(3)]
    mgpu.MemFree(block, stream)
    for other in others:
        assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(other)) == 0
        mgpu.StreamDestroy(other)
        assert "hipStreamDestroy" in mgpu.stderr()
    mgpu.StreamCreate()
    mgpu.MemFree(alloc(mgpu, MIB, mgpu.null), mgpu.null)
    assert alloc(mgpu, KIB, stream) == block


# ---- freed on one stream while other streams work ------------------------------------------------


@in_child(HIPSTUB_ASYNC="held")
def test_a_block_that_another_stream_works_on_waits_for_it(mgpu: Mgpu) -> None:
    """Stock's hipFree waits for the device, so a program may free a block that another stream
    uses."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    other = at_work(mgpu, block, KIB)
    mgpu.MemFree(block, stream)
    assert mgpu.pending(other) == 1  # the free has not waited
    assert alloc(mgpu, KIB, stream) != block
    mgpu.StreamSynchronize(other)
    assert alloc(mgpu, KIB, stream) == block
    assert mgpu.count("hipDeviceSynchronize") == 0


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_FAULT="hipDeviceSynchronize:*:900")
def test_a_block_that_hip_cannot_wait_for_is_not_kept(mgpu: Mgpu) -> None:
    """While another thread captures a stream, HIP refuses to wait for the device. The library then
    frees the block by calling hipFree, as stock does."""
    block = alloc(mgpu, KIB, mgpu.null)
    at_work(mgpu, block, KIB)
    mgpu.MemFree(block, mgpu.null)
    assert alloc(mgpu, KIB, mgpu.null) != block
    assert mgpu.counts("hipFree", "hipDeviceSynchronize") == {
        "hipFree": 1,
        "hipDeviceSynchronize": 1,
    }
    assert (mgpu.stderr(), mgpu.stub.hipGetLastError()) == ("", 0)


@in_child(HIPSTUB_ASYNC="held")
def test_a_block_waits_for_every_stream_at_work(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    others = [at_work(mgpu, block, KIB) for _ in range(9)]
    mgpu.MemFree(block, stream)
    for other in reversed(others):
        assert alloc(mgpu, KIB, stream) != block
        mgpu.StreamSynchronize(other)
    assert alloc(mgpu, KIB, stream) == block


@in_child(HIPSTUB_ASYNC="held")
def test_a_third_stream_waits_for_both_others(mgpu: Mgpu) -> None:
    stream, third = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.Memset32(block, 1, KIB // 4, stream)
    other = at_work(mgpu, block, KIB)
    mgpu.MemFree(block, stream)
    mgpu.StreamSynchronize(other)
    assert alloc(mgpu, KIB, third) != block
    mgpu.StreamSynchronize(stream)
    assert alloc(mgpu, KIB, third) == block


@in_child(HIPSTUB_ASYNC="held")
def test_a_third_stream_waits_for_work_of_others_on_the_stream_of_the_free(mgpu: Mgpu) -> None:
    """The program has submitted work to the stream by calling HIP, so the library's records show
    the stream as idle."""
    stream, third = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    other = at_work(mgpu, block, KIB)
    mgpu.stub.hipMemsetAsync(mgpu.for_stub(block), 1, KIB, mgpu.for_stub(stream))
    mgpu.MemFree(block, stream)
    mgpu.StreamSynchronize(other)
    assert alloc(mgpu, KIB, third) != block
    mgpu.StreamSynchronize(stream)
    assert alloc(mgpu, KIB, third) == block


@in_child(HIPSTUB_ASYNC="held")
def test_a_stream_that_was_destroyed_at_work_is_waited_for(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    other = at_work(mgpu, block, KIB)
    mgpu.StreamDestroy(other)
    mgpu.MemFree(block, stream)
    assert mgpu.pending(other) == 1
    assert alloc(mgpu, KIB, stream) != block
    mgpu.stub.hipStreamSynchronize(mgpu.for_stub(other))  # HIP is asked about what nobody holds
    assert alloc(mgpu, KIB, stream) == block


def free_at_work(mgpu: Mgpu, other, end: Callable[[], object] | None = None) -> None:
    """Frees a block on one stream while the stream `other` works on the block; `end` may end that
    work before the free. The cache does not hand out the block before it has waited for the device.
    HIP may have given the other stream's handle to a new stream. A wait for this handle would then
    prove nothing about the block."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.Memset32(block, 0x07070707, KIB // 4, other)
    if end:
        end()
    waits = mgpu.count("hipDeviceSynchronize")
    mgpu.MemFree(block, stream)
    assert mgpu.count("hipDeviceSynchronize") == waits  # the free has not waited
    assert alloc(mgpu, KIB, stream) != block
    mgpu.MemFree(alloc(mgpu, MIB, mgpu.null), mgpu.null)
    assert mgpu.count("hipDeviceSynchronize") == waits + 1
    assert alloc(mgpu, KIB, stream) == block


def made_by_hip(mgpu: Mgpu):
    """Returns a stream that does not wait for the null stream, like PyTorch's streams."""
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipStreamCreateWithFlags(own, 1) == 0
    return mgpu.from_stub(own[0], "hipStream_t")


@in_child(HIPSTUB_ASYNC="held")
def test_a_block_waits_for_a_stream_that_the_program_made_by_hip(mgpu: Mgpu) -> None:
    """With LLVM 24, gpu.launch accepts a stream that the program created by calling HIP."""
    free_at_work(mgpu, made_by_hip(mgpu))


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DEVICES="2")
def test_a_stream_of_the_programs_may_be_of_another_device_than_the_current_one(
    mgpu: Mgpu,
) -> None:
    other, stream = made_by_hip(mgpu), mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.SetDefaultDevice(1)
    mgpu.Memset32(block, 1, KIB // 4, other)
    mgpu.SetDefaultDevice(0)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) != block


@in_child(HIPSTUB_ASYNC="held")
def test_a_block_waits_for_the_null_stream(mgpu: Mgpu) -> None:
    """A question to AMD's HIP about the null stream would delay all other streams. So the block
    waits until the program waits for the null stream or for the device, through the library."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    for synchronize in (
        lambda: mgpu.StreamSynchronize(mgpu.null),
        lambda: mgpu.MemFree(alloc(mgpu, MIB, mgpu.null), mgpu.null),
    ):
        mgpu.Memset32(block, 0x07070707, KIB // 4, mgpu.null)
        waits = mgpu.count("hipDeviceSynchronize")
        mgpu.MemFree(block, stream)
        assert mgpu.pending(mgpu.null) == 1  # the free has not waited
        assert mgpu.count("hipDeviceSynchronize") == waits
        assert alloc(mgpu, KIB, stream) != block
        assert mgpu.stub.hipStreamSynchronize(mgpu.stub_ffi.NULL) == 0  # the library cannot know
        assert alloc(mgpu, KIB, stream) != block
        synchronize()
        assert alloc(mgpu, KIB, stream) == block
    assert mgpu.count("hipStreamQuery") == 0


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DEVICES="2")
def test_each_device_has_a_null_stream(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.Memset32(block, 0x07070707, KIB // 4, mgpu.null)
    mgpu.SetDefaultDevice(1)
    mgpu.MemFree(block, stream)
    mgpu.SetDefaultDevice(0)
    assert alloc(mgpu, KIB, stream) != block


@in_child(HIPSTUB_ASYNC="held")
def test_a_block_waits_for_a_stream_that_is_no_longer_lent(mgpu: Mgpu) -> None:
    lent = made_by_hip(mgpu)
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.lib.mgpu_rt_use_stream(lent)
    mgpu.Memset32(block, 1, KIB // 4, lent)
    mgpu.lib.mgpu_rt_use_stream(mgpu.null)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) != block


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DESTROY_RETURNS="1", MGPU_RT_STREAM_LIMIT="0")
def test_a_block_waits_for_a_stream_that_hip_destroyed_at_work(mgpu: Mgpu) -> None:
    other = mgpu.StreamCreate()
    free_at_work(mgpu, other, lambda: mgpu.StreamDestroy(other))
    assert mgpu.count("hipStreamDestroy") == 1


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DESTROY_RETURNS="1", HIPSTUB_REUSE="1")
def test_a_block_waits_for_a_stream_whose_handle_hip_handed_out_anew(mgpu: Mgpu) -> None:
    """The program has destroyed our stream by calling HIP, while the stream had pending work."""
    other = mgpu.StreamCreate()

    def end() -> None:
        assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(other)) == 0
        assert mgpu.StreamCreate() == other

    free_at_work(mgpu, other, end)


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DESTROY_RETURNS="1", HIPSTUB_REUSE="1")
def test_a_block_waits_for_a_stream_that_another_kind_has_replaced(mgpu: Mgpu) -> None:
    other = mgpu.StreamCreate()

    def end() -> None:
        assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(other)) == 0
        assert made_by_hip(mgpu) == other
        mgpu.StreamDestroy(other)

    free_at_work(mgpu, other, end)


@in_child(HIPSTUB_ASYNC="held")
def test_idle_streams_cost_a_free_nothing(mgpu: Mgpu) -> None:
    streams = [mgpu.StreamCreate() for _ in range(8)]
    block = alloc(mgpu, KIB, streams[0])
    for stream in streams:
        mgpu.Memset32(block, 1, KIB // 4, stream)
        mgpu.StreamSynchronize(stream)
    mgpu.MemFree(block, streams[0])
    assert alloc(mgpu, KIB, streams[0]) == block


@in_child(HIPSTUB_ASYNC="0")
def test_beyond_256_blocks_a_free_waits_as_stocks(mgpu: Mgpu) -> None:
    """The library does not ask HIP about the null stream."""
    stream, function = mgpu.StreamCreate(), forum(mgpu)
    for _ in range(1000):
        mgpu.launch(function, mgpu.null)  # never synchronised
        mgpu.MemFree(alloc(mgpu, KIB, stream), stream)
    assert mgpu.stub.hipstub_live(b"allocations") <= 258
    assert 3 <= mgpu.count("hipDeviceSynchronize") <= 4


@in_child(HIPSTUB_DEVICES="2", HIPSTUB_ASYNC="held")
def test_a_stream_of_another_device_is_not_waited_for(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.SetDefaultDevice(1)
    there = mgpu.StreamCreate()
    mgpu.launch(forum(mgpu), there)
    mgpu.SetDefaultDevice(0)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) == block


# ---- how much memory the cache keeps -------------------------------------------------------------


def own(mgpu: Mgpu, size: int) -> int:
    return mgpu.stub.hipMalloc(mgpu.stub_ffi.new("void **"), size)


@in_child(HIPSTUB_MEMORY=str(1024 * MIB))
def test_freed_blocks_leave_room_for_memory_of_the_program(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    blocks = [alloc(mgpu, 100 * MIB, stream) for _ in range(8)]
    for block in blocks:
        mgpu.MemFree(block, stream)
    assert own(mgpu, 500 * MIB) == 0
    assert mgpu.stub.hipstub_live(b"bytes") <= (500 + 256) * MIB


@in_child(HIPSTUB_MEMORY=str(1024 * MIB), MGPU_RT_MEMORY_LIMIT="0.9")
def test_the_option_raises_the_bound(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    for _ in range(3):
        blocks = [alloc(mgpu, 100 * MIB, stream) for _ in range(8)]
        for block in blocks:
            mgpu.MemFree(block, stream)
    assert mgpu.counts("hipMalloc", "hipFree") == {"hipMalloc": 8, "hipFree": 0}
    assert own(mgpu, 500 * MIB) == 2


@in_child(MGPU_RT_MEMORY_LIMIT="8M")
def test_beyond_the_bound_only_the_rest_costs_what_stock_costs(mgpu: Mgpu) -> None:
    """Each round frees 25 MB, and the cache keeps 8 MB of these 25 MB. HIP then makes 146 of the
    200 allocations in a round, and the cache serves 54 allocations."""
    stream = mgpu.StreamCreate()
    for _ in range(10):
        before = mgpu.counts("hipMalloc", "hipFree")
        blocks = [alloc(mgpu, 100 * KIB + 256 * number, stream) for number in range(200)]
        for block in blocks:
            mgpu.MemFree(block, stream)
        assert mgpu.stub.hipstub_live(b"bytes") <= 8 * MIB
    after = mgpu.counts("hipMalloc", "hipFree")
    asked = after["hipMalloc"] - before["hipMalloc"]
    assert asked == after["hipFree"] - before["hipFree"]
    assert asked <= 150


@in_child(MGPU_RT_MEMORY_LIMIT="8M")
def test_beyond_the_bound_the_blocks_that_were_freed_last_stay(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    sizes = [3 * MIB + 256 * number for number in range(4)]
    blocks = {size: alloc(mgpu, size, stream) for size in sizes}
    order = [sizes[number] for number in (2, 0, 3, 1)]
    for size in order:
        mgpu.MemFree(blocks[size], stream)
    for size, misses in zip(reversed(order), (0, 0, 1, 2), strict=True):
        alloc(mgpu, size, stream)
        assert mgpu.count("hipMalloc") == len(sizes) + misses


@in_child(MGPU_RT_MEMORY_LIMIT="8M")
def test_frees_before_the_bound_was_reached_count(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()

    def free_both(size: int) -> None:
        blocks = [alloc(mgpu, size, stream) for _ in range(2)]
        for block in blocks:
            mgpu.MemFree(block, stream)

    free_both(3 * MIB)  # 6 MB that no count includes
    free_both(3 * MIB + 256)
    assert mgpu.stub.hipstub_live(b"bytes") <= 8 * MIB


@in_child(MGPU_RT_MEMORY_LIMIT="1M")
def test_memory_that_the_program_holds_does_not_count(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    for _ in range(20):
        alloc(mgpu, MIB, stream)
    for _ in range(100):
        mgpu.MemFree(alloc(mgpu, 64 * KIB, stream), stream)
    assert mgpu.counts("hipMalloc", "hipFree") == {"hipMalloc": 21, "hipFree": 0}


@in_child(HIPSTUB_MEMORY=str(16 * MIB))
def test_an_impossible_allocation_empties_no_cache(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.MemFree(alloc(mgpu, MIB, stream), stream)
    assert mgpu.MemAlloc(17 * MIB, stream, False) == mgpu.null
    assert mgpu.count("hipFree") == 0
    assert mgpu.stub.hipGetLastError() == 2
