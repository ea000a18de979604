"""Device memory: the blocks that the cache keeps and releases, and its messages."""

from __future__ import annotations

import pytest

from tests.support.child import BACKENDS_WITH_GPU, Mgpu, environment, in_child, run_child
from tests.support.images import code_object

KIB, MIB = 1 << 10, 1 << 20
KERNEL = "scale"


def alloc(mgpu: Mgpu, size: int, stream=None):
    return mgpu.MemAlloc(size, stream or mgpu.null, False)


def free(mgpu: Mgpu, block, stream=None) -> None:
    mgpu.MemFree(block, stream or mgpu.null)


# ---- hits ----------------------------------------------------------------------------------------


@in_child()
def test_many_blocks_of_one_size_are_all_reused(mgpu: Mgpu) -> None:
    """The cache gets more blocks of one size than a set has ways. The library chains the surplus
    blocks, and reuses each block."""
    stream = mgpu.StreamCreate()
    for _ in range(3):
        blocks = [alloc(mgpu, KIB, stream) for _ in range(50)]
        assert len(set(blocks)) == 50
        for block in blocks:
            free(mgpu, block, stream)
    assert mgpu.count("hipMalloc") == 50


@in_child(MGPU_RT_STREAM_LIMIT="0")
def test_memory_of_a_destroyed_stream_serves_others(mgpu: Mgpu) -> None:
    first, second = mgpu.StreamCreate(), mgpu.StreamCreate()
    block = alloc(mgpu, KIB, first)
    mgpu.Memset32(block, 1, 256, first)
    mgpu.StreamSynchronize(first)
    free(mgpu, block, first)
    mgpu.StreamDestroy(first)
    assert mgpu.count("hipStreamDestroy") == 1
    assert alloc(mgpu, KIB, second) == block


@in_child(HIPSTUB_DEVICES="2")
def test_devices_have_pools_of_their_own(mgpu: Mgpu) -> None:
    first = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, first)
    free(mgpu, block, first)
    mgpu.StreamSynchronize(first)
    mgpu.SetDefaultDevice(1)
    second = mgpu.StreamCreate()
    there = alloc(mgpu, KIB, second)
    assert there != block
    free(mgpu, there, first)  # the block goes to its own device, though the stream is another's
    assert alloc(mgpu, KIB, second) == there
    mgpu.SetDefaultDevice(0)
    assert alloc(mgpu, KIB, first) == block


@in_child(HIPSTUB_DEVICES="2", HIPSTUB_REUSE="1", MGPU_RT_STREAM_LIMIT="0")
def test_a_handle_that_comes_back_on_another_device_is_another_stream(mgpu: Mgpu) -> None:
    """HIP may give the handle of a destroyed stream to the next stream, on any device."""
    first = mgpu.StreamCreate()
    here = alloc(mgpu, KIB, first)
    free(mgpu, here, first)
    mgpu.StreamDestroy(first)
    mgpu.SetDefaultDevice(1)
    assert mgpu.StreamCreate() == first
    there = alloc(mgpu, KIB, first)
    assert there != here
    free(mgpu, there, first)
    mgpu.StreamDestroy(first)
    mgpu.SetDefaultDevice(0)
    assert mgpu.StreamCreate() == first
    assert alloc(mgpu, KIB, first) == here
    free(mgpu, here, first)
    assert mgpu.counts("hipMalloc", "hipDeviceSynchronize") == {
        "hipMalloc": 2,
        "hipDeviceSynchronize": 0,  # each destroy has waited for the stream's own work
    }


@in_child(HIPSTUB_REUSE="1", HIPSTUB_DESTROY_RETURNS="1", HIPSTUB_ASYNC="held")
def test_a_handle_that_comes_back_from_hip_is_another_stream(mgpu: Mgpu) -> None:
    """The program has destroyed the stream by calling HIP, with pending work, and HIP did not wait
    for that work. A new stream then gets the old stream's handle. The new stream does not wait for
    the old stream's pending work, which still uses freed memory."""
    first = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, first)
    mgpu.Memset32(block, 1, KIB // 4, first)
    free(mgpu, block, first)
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(first)) == 0
    assert mgpu.StreamCreate() == first
    again = alloc(mgpu, KIB, first)
    assert again != block or mgpu.pending(first) == 0


@in_child(HIPSTUB_REUSE="1", HIPSTUB_DESTROY_RETURNS="1", HIPSTUB_ASYNC="held")
def test_a_lent_handle_that_comes_back_from_hip_is_another_stream(mgpu: Mgpu) -> None:
    """The program sets an external stream, frees memory on the stream, and destroys the stream. The
    library's next stream then has the handle."""
    lent = mgpu.hip_stream()
    mgpu.lib.mgpu_rt_use_stream(lent)
    block = alloc(mgpu, KIB, lent)
    mgpu.Memset32(block, 1, KIB // 4, lent)
    free(mgpu, block, lent)
    mgpu.lib.mgpu_rt_use_stream(mgpu.null)
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(lent)) == 0
    assert mgpu.StreamCreate() == lent
    again = alloc(mgpu, KIB, lent)
    assert again != block or mgpu.pending(lent) == 0


# ---- shared with the host ------------------------------------------------------------------------


#: If the device has no managed memory, HIP 5 to 7 return error 801 (not supported).
@in_child(HIPSTUB_FAULT="hipMallocManaged:*:801", backends=("stub",))
def test_without_managed_memory_shared_memory_is_that_of_stock(mgpu: Mgpu) -> None:
    """HIP gives no information about device memory, and HIP 7 keeps an error until the program
    reads the error."""
    block = shared(mgpu, 1000)
    assert block and mgpu.count("hipMalloc") == 1
    free(mgpu, block)
    assert mgpu.stub.hipGetLastError() == 0
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_FAULT="hipMallocManaged:*:801", HIPSTUB_VERSION="70000000", backends=("stub",))
def test_without_managed_memory_no_error_is_left(mgpu: Mgpu) -> None:
    assert shared(mgpu, 1000)
    assert mgpu.stub.hipGetLastError() == 0


@in_child(HIPSTUB_FAULT="hipMallocManaged:*:1", backends=("stub",))
def test_a_refusal_is_not_taken_for_a_lack_of_memory(mgpu: Mgpu) -> None:
    assert not shared(mgpu, 1000)
    assert mgpu.stderr() == "'hipMalloc(&ptr, sizeBytes)' failed with 'hipErrorInvalidValue'\n"


def shared(mgpu: Mgpu, size: int):
    return mgpu.MemAlloc(size, mgpu.null, True)


@in_child()
def test_the_shared_flag_counts_without_a_stream_only(mgpu: Mgpu) -> None:
    """LLVM 17 and older pass no flag, so the library reads garbage in place of the flag. These
    releases always pass a stream, and the library then ignores the flag."""
    stream = mgpu.StreamCreate()
    free(mgpu, mgpu.MemAlloc(100, stream, True), stream)
    assert mgpu.counts("hipMalloc", "hipMallocManaged") == {"hipMalloc": 1, "hipMallocManaged": 0}
    free(mgpu, shared(mgpu, 100))
    assert mgpu.counts("hipMalloc", "hipMallocManaged") == {"hipMalloc": 1, "hipMallocManaged": 1}


@in_child(backends=BACKENDS_WITH_GPU)
def test_shared_memory_is_handed_out_again(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = shared(mgpu, KIB)
    mgpu.Memset32(block, 41, KIB // 4, stream)
    free(mgpu, block, stream)
    mgpu.StreamSynchronize(stream)
    again = shared(mgpu, KIB)
    assert again == block
    mgpu.Memset32(again, 42, KIB // 4, stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.ffi.cast("uint32_t *", again)[0] == 42
    free(mgpu, again, stream)
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_ASYNC="held")
def test_shared_memory_waits_for_its_stream(mgpu: Mgpu) -> None:
    """The host may write to new shared memory at once, so the library reuses no block on which a
    stream still works."""
    stream = mgpu.StreamCreate()
    block = shared(mgpu, 4 * KIB)
    mgpu.Memset32(block, 7, KIB, stream)
    free(mgpu, block, stream)
    assert shared(mgpu, 4 * KIB) != block
    mgpu.StreamSynchronize(stream)
    assert shared(mgpu, 4 * KIB) == block
    mgpu.Memset32(block, 7, KIB, stream)
    free(mgpu, block)
    assert mgpu.pending(stream) == 0  # without a stream the library waits for all
    assert shared(mgpu, 4 * KIB) == block


@in_child(HIPSTUB_ASYNC="held", MGPU_RT_EXCLUSIVE="on")
def test_shared_memory_of_an_idle_stream_waits_for_nothing(mgpu: Mgpu) -> None:
    """The cache hands out a freed block again without making HIP synchronise, if the block's stream
    is idle."""
    stream = mgpu.StreamCreate()
    for _ in range(4):
        free(mgpu, shared(mgpu, KIB), stream)
        mgpu.StreamSynchronize(stream)
    block = shared(mgpu, KIB)
    assert mgpu.count("hipMallocManaged") == 1
    mgpu.Memset32(block, 7, KIB // 4, stream)
    free(mgpu, block, stream)
    assert shared(mgpu, KIB) != block


@in_child()
def test_shared_memory_serves_shared_memory_only(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    ours, device = shared(mgpu, KIB), alloc(mgpu, KIB, stream)
    free(mgpu, ours, stream)
    free(mgpu, device, stream)
    mgpu.StreamSynchronize(stream)
    assert [alloc(mgpu, KIB, stream), shared(mgpu, KIB)] == [device, ours]
    free(mgpu, ours)
    free(mgpu, device)
    assert [shared(mgpu, KIB), alloc(mgpu, KIB)] == [ours, device]


@in_child(MGPU_RT_MEMORY_LIMIT="256K")
def test_shared_memory_above_the_limit_is_given_back(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    blocks = [shared(mgpu, 200 * KIB) for _ in range(3)]
    assert mgpu.lib.mgpu_rt_empty_cache() == 0  # the program's
    for block in blocks:
        free(mgpu, block, stream)
    assert mgpu.stub.hipstub_live(b"bytes") <= 256 * KIB


@in_child(HIPSTUB_REUSE="1")
def test_smaller_shared_memory_at_the_same_address_is_another_block(mgpu: Mgpu) -> None:
    """The program has freed the block by calling HIP, and HIP has put a smaller block at the
    address. The program then frees the smaller block."""
    stream = mgpu.StreamCreate()
    block = mgpu.replaced(
        lambda: shared(mgpu, 4 * KIB),
        lambda own, size: mgpu.stub.hipMallocManaged(own, size, 1),
        4 * KIB,
    )
    free(mgpu, block, stream)
    mgpu.StreamSynchronize(stream)
    large = shared(mgpu, 4 * KIB)
    mgpu.Memset32(large, 1, KIB, stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.stub.hipstub_misuse() == 0


# ---- bad input -----------------------------------------------------------------------------------


@in_child(backends=BACKENDS_WITH_GPU)
def test_memory_freed_twice_is_refused(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    free(mgpu, block, stream)
    free(mgpu, block, stream)
    text = mgpu.stderr()
    assert "'hipFree(ptr)' failed with 'hipErrorInvalidValue'" in text
    assert "which was freed before" in text
    assert alloc(mgpu, KIB, stream) == block
    assert alloc(mgpu, KIB, stream) != block


@in_child(backends=BACKENDS_WITH_GPU)
def test_an_address_inside_a_cached_block_is_refused(mgpu: Mgpu) -> None:
    """HIP 5.2.3 would free the block that the cache is about to hand out."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    free(mgpu, block, stream)
    free(mgpu, mgpu.ffi.cast("char *", block) + 64, stream)
    said = mgpu.stderr()
    assert "'hipFree(ptr)' failed with 'hipErrorInvalidValue'" in said
    assert "which was freed before" in said
    assert not mgpu.on_stub or mgpu.stub.hipstub_live(b"allocations") == 1
    again = alloc(mgpu, KIB, stream)
    mgpu.Memset32(again, 1, 256, stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.stderr() == ""


# ---- running out ---------------------------------------------------------------------------------


@in_child(HIPSTUB_MEMORY=str(MIB), HIPSTUB_ASYNC="held")
def test_a_lack_of_memory_gives_back_all_that_is_cached(mgpu: Mgpu) -> None:
    """If no block that is free now suffices, the library releases the cached blocks of all streams,
    even of busy streams. No error remains."""
    streams = [mgpu.StreamCreate() for _ in range(3)]
    for stream in streams:
        block = alloc(mgpu, 256 * KIB, stream)
        mgpu.Memset32(block, 1, 1024, stream)
        free(mgpu, block, stream)
    assert alloc(mgpu, 1000 * KIB, streams[0]) != mgpu.null
    assert mgpu.counts("hipMalloc", "hipFree") == {"hipMalloc": 4, "hipFree": 3}
    assert mgpu.stub.hipPeekAtLastError() == 0
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_MEMORY=str(MIB))
def test_a_lack_of_memory_that_remains_releases_modules(mgpu: Mgpu) -> None:
    """The library releases modules only if all idle blocks were not enough."""
    module = mgpu.load(mgpu.image(code_object("forum")))
    mgpu.ModuleUnload(module)
    held = alloc(mgpu, 512 * KIB)
    free(mgpu, alloc(mgpu, 256 * KIB))
    assert mgpu.count("hipModuleUnload") == 0
    assert alloc(mgpu, 1000 * KIB) == mgpu.null
    assert mgpu.count("hipModuleUnload") == 1
    free(mgpu, held)


@in_child(HIPSTUB_MEMORY=str(MIB))
def test_a_lack_of_memory_is_reported_with_sizes(mgpu: Mgpu) -> None:
    held = alloc(mgpu, 512 * KIB)
    assert alloc(mgpu, MIB) == mgpu.null
    text = mgpu.stderr()
    assert "'hipMalloc(&ptr, sizeBytes)' failed with 'hipErrorOutOfMemory'" in text
    assert f"no device memory for {MIB} bytes: the program holds {512 * KIB} bytes" in text
    free(mgpu, held)
    assert alloc(mgpu, MIB) != mgpu.null


@in_child()
def test_absurd_sizes_are_refused(mgpu: Mgpu) -> None:
    for size in (2**64 - 1, 2**64 - 255, 2**63):
        assert alloc(mgpu, size) == mgpu.null
    assert mgpu.stderr().count("'hipMalloc(&ptr, sizeBytes)' failed with") == 3


def churn(mgpu: Mgpu, stream, data, sizes=(KIB, 3 * KIB)) -> None:
    """Allocates, copies in, copies out and frees; checks the copied data if the allocation
    succeeded."""
    for size in sizes:
        block = alloc(mgpu, size, stream)
        if not block:
            continue
        out = mgpu.ffi.new("char[]", size)
        mgpu.Memcpy(block, data, size, stream)
        mgpu.Memcpy(out, block, size, stream)
        mgpu.StreamSynchronize(stream)
        if not mgpu.stderr():
            assert mgpu.ffi.buffer(out)[:] == mgpu.ffi.buffer(data, size)[:]
        free(mgpu, block, stream)


@pytest.mark.parametrize("point", range(1, 5))
@pytest.mark.parametrize("function", ["hipMalloc", "hipHostMalloc", "hipMemcpyAsync", "hipFree"])
def test_each_failure_leaves_no_leak_and_no_lost_block(function: str, point: int) -> None:
    """After the failed call, the work succeeds again, and the library returns all blocks to HIP."""
    env = environment(HIPSTUB_FAULT=f"{function}:{point}:2", MGPU_RT_EXCLUSIVE="on")
    run_child(__name__, "_survives", env)


@in_child()
def _survives(mgpu: Mgpu) -> None:
    data = mgpu.ffi.new("char[]", bytes(i % 251 for i in range(3 * KIB)))
    stream = mgpu.StreamCreate()
    for _ in range(6):
        churn(mgpu, stream, data)
        mgpu.lib.mgpu_rt_empty_cache()
    mgpu.stderr()
    churn(mgpu, stream, data)
    assert mgpu.stderr() == ""
    mgpu.StreamDestroy(stream)
    mgpu.lib.mgpu_rt_empty_cache()
    lost = 1 if mgpu.count("hipFree") and mgpu.stub.hipstub_live(b"bytes") else 0
    assert mgpu.stub.hipstub_live(b"allocations") <= lost
    assert mgpu.stub.hipstub_misuse() == 0


# ---- the limit, and memory returned to HIP -------------------------------------------------------


@in_child()
def test_empty_cache_gives_blocks_back_and_returns_their_size(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    held = alloc(mgpu, KIB, stream)
    for size in (KIB, 2 * KIB, 3 * KIB):
        free(mgpu, alloc(mgpu, size, stream), stream)
    assert mgpu.lib.mgpu_rt_empty_cache() == 3
    assert mgpu.stub.hipstub_live(b"bytes") == KIB
    free(mgpu, held, stream)


@in_child(MGPU_RT_STATS="1")
def test_statistics_count_blocks_and_bytes(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    for _ in range(10):
        first, second = alloc(mgpu, KIB, stream), alloc(mgpu, 2 * KIB, stream)
        free(mgpu, first, stream)
        free(mgpu, second, stream)
    held = alloc(mgpu, KIB, stream)
    stats = mgpu.stats()
    assert stats["cache"]["memory"] == {"hits": 19, "misses": 2, "evictions": 0}
    assert stats["memory"]["0"] == {
        "allocated": KIB,
        "peak_allocated": 3 * KIB,
        "reserved": 3 * KIB,
        "peak_reserved": 3 * KIB,
        "blocks": 2,
        "cached_blocks": 1,
    }
    free(mgpu, held, stream)
