"""Tests copies, which run in the stream's order. When a call returns, the host may reuse the
source, and a copy to the host is complete."""

from __future__ import annotations

from tests.support.child import BACKENDS_WITH_GPU, Mgpu, in_cases, in_child
from tests.support.known import forum

KIB, MIB = 1 << 10, 1 << 20
HELD = {"HIPSTUB_ASYNC": "held"}

#: Sizes of copies to the device: two small sizes, the largest size that the library stages, and one
#: byte more than this largest size. Some sizes are odd, so that the last piece is incomplete.
UP = [1, 4001, 64 * KIB, 512 * KIB, 512 * KIB + 1]
#: Sizes of copies from the device: a small size, the largest size that the library stages on
#: NVIDIA's driver, and one byte more.
DOWN = [1, 256 * KIB, 256 * KIB + 1]


def pattern(mgpu: Mgpu, size: int, seed: int = 0):
    unit = bytes((i * 31 + seed) % 251 for i in range(251))
    return mgpu.ffi.new(f"char[{size}]", (unit * (size // 251 + 1))[:size])


def read(mgpu: Mgpu, block, size: int, stream) -> bytes:
    """Returns a block's contents; the copy is to pageable memory, so it is complete when mgpuMemcpy
    returns."""
    out = mgpu.ffi.new("char[]", size)
    mgpu.Memcpy(out, block, size, stream)
    return mgpu.ffi.buffer(out)[:]


@in_child(backends=BACKENDS_WITH_GPU)
def test_copies_come_back_unchanged(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    for size in [*UP, *DOWN]:
        data, block = pattern(mgpu, size), mgpu.MemAlloc(size, stream, False)
        mgpu.Memcpy(block, data, size, stream)
        assert read(mgpu, block, size, stream) == mgpu.ffi.buffer(data)[:]
        mgpu.MemFree(block, stream)
    assert mgpu.stderr() == ""


@in_child(**HELD, MGPU_RT_EXCLUSIVE="on")
def test_hip_copies_more_than_64_kib_to_an_idle_device(mgpu: Mgpu) -> None:
    """HIP's own copy then waits for no work, and is faster (bench/results/copies.md)."""
    stream, data = mgpu.StreamCreate(), pattern(mgpu, 128 * KIB)
    block = mgpu.MemAlloc(MIB, stream, False)
    mgpu.Memcpy(block, data, 128 * KIB, stream)
    assert mgpu.count("hipHostMalloc") == 0
    mgpu.Memcpy(block, data, 128 * KIB, stream)  # the stream is at work now
    assert mgpu.count("hipHostMalloc") == 1
    mgpu.StreamSynchronize(stream)
    mgpu.Memcpy(block, data, 64 * KIB, stream)
    assert mgpu.pending(stream) == 1


@in_child(**HELD, backends=BACKENDS_WITH_GPU)
def test_registered_memory_is_copied_directly(mgpu: Mgpu) -> None:
    """The copy does not block: the device reads the source in the stream's order, as with stock."""
    stream, data = mgpu.StreamCreate(), pattern(mgpu, 64 * KIB)
    block = mgpu.MemAlloc(64 * KIB, stream, False)
    mgpu.MemHostRegister(data, 64 * KIB)
    mgpu.Memcpy(block, data, 64 * KIB, stream)
    if mgpu.on_stub:
        assert mgpu.pending(stream) == 1
        assert mgpu.count("hipHostMalloc") == 0
    mgpu.StreamSynchronize(stream)
    mgpu.MemHostUnregister(data)
    assert read(mgpu, block, 64 * KIB, stream) == mgpu.ffi.buffer(data)[:]


@in_cases(("own", "null"), **{**HELD, "HIPSTUB_PAGEABLE": "1", "MGPU_RT_EXCLUSIVE": "on"})
def test_a_source_that_a_kernel_may_write_is_not_read_early(mgpu: Mgpu, whose: str) -> None:
    """A device that can read pageable memory may read the source early only if no kernel precedes
    the copy. The kernel may be on the copy's stream or on the null stream. The library must
    remember a pending kernel even if later work follows the kernel on the stream."""
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.launch(forum(mgpu), stream if whose == "own" else mgpu.null)
    for _ in range(2 if whose == "own" else 1):
        mgpu.Memcpy(block, pattern(mgpu, KIB), KIB, stream)
    assert mgpu.count("hipHostMalloc") == 0
    mgpu.StreamSynchronize(mgpu.null)
    mgpu.StreamSynchronize(stream)
    mgpu.Memcpy(block, pattern(mgpu, KIB), KIB, stream)
    assert mgpu.count("hipHostMalloc") == 1


@in_child(**HELD)
def test_a_copy_leaves_streams_independent(mgpu: Mgpu) -> None:
    """A question to AMD's HIP about the null stream makes all streams wait for each other's
    kernels. So HIP itself copies from memory that may be a module's global."""
    function = forum(mgpu)
    busy, stream = mgpu.StreamCreate(), mgpu.StreamCreate()
    block, other = (mgpu.MemAlloc(KIB, stream, False) for _ in range(2))
    mgpu.launch(function, busy)
    mgpu.Memcpy(block, pattern(mgpu, KIB), KIB, stream)
    mgpu.Memcpy(other, block, KIB, stream)
    assert mgpu.count("hipStreamQuery") == 0
    assert mgpu.pending(mgpu.null) == 0
    assert mgpu.count("hipHostMalloc") == 0
    mgpu.StreamSynchronize(stream)
    assert mgpu.pending(busy) == 1


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_hip_itself_copies_memory_that_hip_knows(mgpu: Mgpu) -> None:
    """The program has allocated the memory by calling HIP. No error remains."""
    foreign = mgpu.by_hip("hipMalloc", KIB)
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.Memcpy(foreign, pattern(mgpu, KIB), KIB, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.Memcpy(block, foreign, KIB, stream)
    mgpu.Memcpy(foreign, block, KIB, stream)
    assert mgpu.count("hipHostMalloc") == 0
    assert mgpu.count("hipPointerGetAttributes") > 0
    assert read(mgpu, block, KIB, stream) == mgpu.ffi.buffer(pattern(mgpu, KIB))[:]
    assert mgpu.stub.hipPeekAtLastError() == 0
