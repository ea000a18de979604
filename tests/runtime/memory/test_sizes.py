"""Blocks for programs whose sizes change: the classes of sizes, what the program asked for, and the
idle blocks that leave."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from tests.support import programs
from tests.support.child import BACKENDS, Mgpu, in_child
from tests.support.known import alloc
from tests.support.suites import in_check

KIB, MIB = 1 << 10, 1 << 20


def misses(mgpu: Mgpu) -> int:
    return mgpu.stats()["cache"]["memory"]["misses"]


# ---- classes of sizes ----


@in_child()
def test_many_blocks_of_one_size_are_all_reused(mgpu: Mgpu) -> None:
    """The cache gets more blocks of one size than a set has ways. The library chains the surplus
    blocks, and reuses each block, also for smaller requests."""
    stream = mgpu.StreamCreate()
    blocks = [alloc(mgpu, 2 * MIB, stream) for _ in range(50)]
    for size in (2 * MIB, MIB, 2 * MIB):
        for block in blocks:
            mgpu.MemFree(block, stream)
        assert {alloc(mgpu, size, stream) for _ in range(50)} == set(blocks)


@in_child()
def test_a_small_request_takes_a_large_block_up_to_sixteen_times_as_large(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    small, large = alloc(mgpu, 48 * KIB, stream), alloc(mgpu, 160 * KIB, stream)
    for block in (small, large):
        mgpu.MemFree(block, stream)
    assert alloc(mgpu, 9 * KIB, stream) not in (small, large)
    assert alloc(mgpu, 10 * KIB, stream) == large
    host = mgpu.ffi.new("char[]", 11 * KIB)
    mgpu.Memcpy(large, host, 11 * KIB, stream)  # past the request
    assert "failed with" in mgpu.stderr()
    assert mgpu.stats()["memory"]["0"]["allocated"] == 19 * KIB
    mgpu.MemFree(large, stream)
    assert mgpu.stats()["memory"]["0"]["allocated"] == 9 * KIB


@in_child()
def test_a_fixed_size_gets_a_block_of_its_own(mgpu: Mgpu) -> None:
    """Otherwise each of its allocations would search for a larger block."""
    stream = mgpu.StreamCreate()
    large = alloc(mgpu, 2 * MIB, stream)
    mgpu.MemFree(large, stream)
    for _ in range(255):
        assert alloc(mgpu, MIB, stream) == large
        mgpu.MemFree(large, stream)
    own = alloc(mgpu, MIB, stream)
    assert own != large
    mgpu.MemFree(own, stream)
    assert alloc(mgpu, MIB, stream) == own
    assert mgpu.count("hipMalloc") == 2


@in_child()
def test_the_smallest_of_the_blocks_that_wait_serves(mgpu: Mgpu) -> None:
    stream, other = mgpu.StreamCreate(), mgpu.StreamCreate()
    sizes = [MIB + 512 * KIB, 3 * MIB, 2 * MIB]
    blocks = dict(zip(sizes, [alloc(mgpu, size, stream) for size in sizes], strict=True))
    mgpu.Memset32(blocks[2 * MIB], 1, 64, other)
    for block in blocks.values():
        mgpu.MemFree(block, stream)
    mgpu.StreamSynchronize(other)
    for size in sorted(sizes):
        assert alloc(mgpu, MIB, stream) == blocks[size]
    assert mgpu.count("hipMalloc") == 3


# ---- programs ----


def run(mgpu: Mgpu, rounds: Iterable[list[int]], weights: int = 0) -> tuple[float, float]:
    """Allocates each round's sizes, then frees them, beside weights that stay. Returns the part of
    the allocations that HIP made, and the reserved bytes as a multiple of the program's peak."""
    stream = mgpu.StreamCreate()
    allocations = peak = 0
    if weights:
        alloc(mgpu, weights, stream)
    for sizes in rounds:
        blocks = [alloc(mgpu, size, stream) for size in sizes]
        for block in blocks:
            mgpu.MemFree(block, stream)
        allocations += len(sizes)
        peak = max(peak, weights + sum(sizes))
    return misses(mgpu) / allocations, mgpu.stats()["memory"]["0"]["peak_reserved"] / peak


def ragged(unit: int, seed: int = 9) -> Iterable[list[int]]:
    rng = random.Random(seed)
    lengths = (rng.randrange(16, 1025) for _ in range(400))
    return ([length * unit * part for part in (4, 16, 4)] for length in lengths)


@pytest.mark.parametrize(
    ("program", "rounds"),
    in_check([("grow", 400), ("ragged", 100), ("ragged", 2000)], lambda _, rounds: rounds == 2000),
)
def test_programs_of_bench_ask_hip_seldom(program: str, rounds: int) -> None:
    way = programs.ways()["linked"]
    outcome = programs.run(
        program, 22, way, policy="builtin", iterations=rounds, stats=True, HIPSTUB_MODE="fast"
    )
    memory = outcome.stats["memory"]["0"]
    asked = outcome.hip("hipMalloc") / outcome.stats["abi"]["mgpuMemAlloc"]["calls"]
    assert asked <= 0.10, asked
    assert memory["peak_reserved"] <= 2 * memory["peak_allocated"], memory


@in_child()
def test_ragged_batches_hold_twice_their_memory_at_most(mgpu: Mgpu) -> None:
    """No block stays, so a large batch that comes seldom needs all the memory that is held."""
    asked, reserved = run(mgpu, [*ragged(KIB, 1), *ragged(KIB, 2), *ragged(KIB, 9)])
    assert asked <= 0.10, asked
    assert reserved <= 2, reserved


@in_child()
def test_sizes_of_the_past_leave_at_a_free(mgpu: Mgpu) -> None:
    """An allocation frees no block, because stock's hipMalloc does not wait for the device."""
    stream = mgpu.StreamCreate()
    for step in range(1, 60):
        before = mgpu.count("hipFree")
        blocks = [alloc(mgpu, step * 160 * KIB, stream) for _ in range(3)]
        assert mgpu.count("hipFree") == before
        for block in blocks:
            mgpu.MemFree(block, stream)
    assert mgpu.count("hipFree") > 0
    assert mgpu.stub.hipstub_live(b"bytes") <= 2 * 3 * 60 * 160 * KIB


@in_child()
def test_blocks_of_ended_threads_count(mgpu: Mgpu) -> None:
    """Each thread counts what it allocates and frees."""
    import threading

    stream = mgpu.StreamCreate()
    held = []
    thread = threading.Thread(target=lambda: held.extend(alloc(mgpu, MIB, stream) for _ in "123"))
    thread.start()
    thread.join()
    for step in range(1, 40):
        mgpu.MemFree(alloc(mgpu, MIB + step * 128 * KIB, stream), stream)
    for block in held:
        mgpu.MemFree(block, stream)
    assert mgpu.stats()["memory"]["0"]["allocated"] == 0
    assert mgpu.stub.hipstub_live(b"bytes") <= 20 * MIB


# ---- what the program asked for ----


def check_ends(mgpu: Mgpu, size: int) -> None:
    """HIP accepts calls that lead to the end of a block, and refuses calls past it."""
    stream = mgpu.StreamCreate()
    block, other = alloc(mgpu, size, stream), alloc(mgpu, 2 * size, stream)
    host = mgpu.ffi.new("char[]", 2 * size)
    near = mgpu.ffi.cast("void *", int(mgpu.ffi.cast("size_t", block)) + size - 8)
    for call in (
        lambda bytes_: mgpu.Memcpy(block, host, bytes_, stream),
        lambda bytes_: mgpu.Memcpy(host, block, bytes_, stream),
        lambda bytes_: mgpu.Memcpy(other, block, bytes_, stream),
        lambda bytes_: mgpu.Memcpy(block, other, bytes_, stream),
        lambda bytes_: mgpu.Memset32(block, 1, bytes_ // 4, stream),
        lambda bytes_: mgpu.Memset16(block, 1, bytes_ // 2, stream),
        lambda bytes_: mgpu.Memcpy(near, host, bytes_ - size + 8, stream),
    ):
        for past in (0, 4, 1024):
            call(size + past)
            mgpu.StreamSynchronize(stream)
            assert ("failed" in mgpu.stderr()) == (past > 0)


@in_child(backends=BACKENDS)
def test_a_call_past_the_request_fails_as_with_hip(mgpu: Mgpu) -> None:
    check_ends(mgpu, 132 * KIB)  # the block has 144 KiB


@in_child(backends=BACKENDS, MGPU_RT_CACHE="off")
def test_stock_refuses_a_call_past_the_request(mgpu: Mgpu) -> None:
    check_ends(mgpu, 132 * KIB)


@in_child(HIPSTUB_REUSE="1")
def test_a_copy_and_a_fill_end_where_memory_of_other_code_ends(mgpu: Mgpu) -> None:
    """Other code frees the library's block, and allocates more bytes at the same address."""
    stream = mgpu.StreamCreate()
    block, size = alloc(mgpu, 132 * KIB, stream), 140 * KIB
    own = mgpu.for_stub(block)
    assert mgpu.stub.hipFree(own) == 0
    others = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(others, size) == 0
    assert others[0] == own
    mgpu.Memcpy(block, mgpu.ffi.new("char[]", size), size, stream)
    mgpu.Memset32(block, 1, size // 4, stream)
    assert "failed" not in mgpu.stderr()


@in_child(backends=BACKENDS)
def test_a_reused_block_ends_where_its_next_request_ends(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    host = mgpu.ffi.new("char[]", 144 * KIB)
    for size in (132 * KIB, 144 * KIB, 140 * KIB):
        block = alloc(mgpu, size, stream)
        mgpu.Memcpy(block, host, size, stream)
        assert mgpu.stderr() == ""
        if size < 144 * KIB:
            mgpu.Memcpy(block, host, size + 1, stream)
            assert "failed with" in mgpu.stderr()
        mgpu.MemFree(block, stream)
    assert misses(mgpu) == 1


# ---- the limit ----


@in_child(MGPU_RT_MEMORY_LIMIT="1M")
def test_memory_beyond_the_requests_counts_against_the_limit(mgpu: Mgpu) -> None:
    """Each request of 4.1 MB is rounded up by 0.4 MB, as long as the sum is below the limit. The
    following blocks have their exact size, and leave at their free beyond the limit."""
    stream = mgpu.StreamCreate()
    size = 4 * MIB + 104 * KIB
    blocks = [alloc(mgpu, size, stream) for _ in range(5)]
    slack = 4 * MIB + 512 * KIB - size
    assert mgpu.stub.hipstub_live(b"bytes") == 5 * size + MIB // slack * slack
    mgpu.MemFree(blocks.pop(), stream)
    assert mgpu.count("hipFree") == 1


# ---- a lack of memory ----


@in_child(MGPU_RT_MEMORY_LIMIT="64K")
def test_memory_that_the_program_holds_again_evicts_no_idle_block(mgpu: Mgpu) -> None:
    """The library counts a small block as idle until it looks at the block. Here it finds the held
    blocks behind the idle one."""
    stream = mgpu.StreamCreate()
    idle, *held = (alloc(mgpu, size, stream) for size in (512, *(KIB,) * 200))
    mgpu.MemFree(idle, stream)
    for block in held:
        mgpu.MemFree(block, stream)
        assert alloc(mgpu, KIB, stream) == block
    assert mgpu.count("hipFree") == 0
    assert alloc(mgpu, 512, stream) == idle


@in_child(HIPSTUB_MEMORY=str(140 * KIB), MGPU_RT_MEMORY_LIMIT="0.99")
def test_the_exact_size_is_tried_if_the_rounded_one_is_refused(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, 132 * KIB, stream)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipPeekAtLastError() == 0
    assert mgpu.stub.hipstub_live(b"bytes") <= 133 * KIB
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, 130 * KIB, stream) == block  # a request of the class that fits
    assert mgpu.count("hipFree") == 0


@in_child(HIPSTUB_MEMORY=str(512 * MIB))
def test_rounding_takes_at_most_a_sixteenth_of_the_device(mgpu: Mgpu) -> None:
    """Otherwise a program that fills the device with stock would lack memory."""
    stream = mgpu.StreamCreate()
    for _ in range(17):
        alloc(mgpu, 28 * MIB + MIB // 2, stream)
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_MEMORY=str(512 * MIB), MGPU_RT_MEMORY_LIMIT="0.9")
def test_bytes_beyond_the_requests_of_hits_count_too(mgpu: Mgpu) -> None:
    """A block may serve a smaller request of its class. If hits leave many bytes unused, HIP gets
    exact sizes."""
    stream = mgpu.StreamCreate()
    for block in [alloc(mgpu, 18 * MIB, stream) for _ in range(17)]:
        mgpu.MemFree(block, stream)
    for _ in range(17 + 12):
        alloc(mgpu, 16 * MIB + 1, stream)
    assert mgpu.counts("hipMalloc", "hipFree") == {"hipMalloc": 17 + 12, "hipFree": 0}
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_MEMORY=str(1024 * MIB), MGPU_RT_MEMORY_LIMIT="0.9")
def test_larger_blocks_take_at_most_a_sixteenth_of_the_device(mgpu: Mgpu) -> None:
    """A block that serves a smaller request is lost to the program until it frees the block."""
    stream = mgpu.StreamCreate()
    for _ in range(2):
        blocks = [alloc(mgpu, 14 * MIB, stream) for _ in range(70)]
        for block in blocks:
            mgpu.MemFree(block, stream)
        small = [alloc(mgpu, 4 * MIB, stream) for _ in range(240)]
        assert mgpu.stderr() == ""
        for block in small:
            mgpu.MemFree(block, stream)


@in_child(HIPSTUB_MEMORY=str(512 * MIB))
def test_near_the_capacity_with_one_idle_block_an_allocation_asks_hip_twice_at_most(
    mgpu: Mgpu,
) -> None:
    stream = mgpu.StreamCreate()
    alloc(mgpu, 380 * MIB, stream)
    for step in range(200):
        mgpu.MemFree(alloc(mgpu, (100, 120)[step % 2] * MIB, stream), stream)
    assert mgpu.count("hipMalloc") <= 1 + 2 * 200
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_MEMORY=str(512 * MIB), MGPU_RT_MEMORY_LIMIT="0.9")
def test_nothing_is_evicted_once_hip_has_memory_again(mgpu: Mgpu) -> None:
    """hipFree waits for the device, and stock's hipMalloc does not."""
    stream = mgpu.StreamCreate()
    idle = alloc(mgpu, 56 * MIB, stream)
    others = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(others, 400 * MIB) == 0
    assert mgpu.MemAlloc(100 * MIB, stream, False) == mgpu.null
    mgpu.stderr()
    assert mgpu.stub.hipFree(others[0]) == 0
    mgpu.MemFree(idle, stream)
    before = mgpu.count("hipFree")
    alloc(mgpu, 120 * MIB, stream)
    assert mgpu.count("hipFree") == before


@in_child(HIPSTUB_MEMORY=str(512 * MIB), MGPU_RT_MEMORY_LIMIT="0.9")
def test_a_lack_of_memory_evicts_what_the_request_needs(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    blocks = [alloc(mgpu, 56 * MIB, stream) for _ in range(9)]
    for block in blocks:
        mgpu.MemFree(block, stream)
    alloc(mgpu, 5 * MIB, stream)
    before = mgpu.count("hipFree")
    alloc(mgpu, 64 * MIB, stream)  # less than one block of 56 MB is missing
    assert mgpu.count("hipFree") == before + 1
    assert mgpu.stub.hipstub_live(b"bytes") > 450 * MIB


@in_child(MGPU_RT_STATS="/dev/null")
def test_sizes_are_rounded_up_to_an_eighth_of_a_power_of_two(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    alloc(mgpu, 256, stream)
    for size, rounded in (
        (KIB, KIB),
        (64 * KIB + 1, 72 * KIB),
        (97 * KIB, 104 * KIB),
        (3 * MIB, 3 * MIB),
        (3 * MIB + 1, 3 * MIB + MIB // 4),
        (129 * MIB, 144 * MIB),
    ):
        before = mgpu.stats()["memory"]["0"]["reserved"]
        alloc(mgpu, size, stream)
        assert mgpu.stats()["memory"]["0"]["reserved"] - before == rounded
