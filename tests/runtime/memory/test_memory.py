"""Device memory: the blocks that the cache keeps and releases."""

from __future__ import annotations

from tests.support.child import Mgpu, in_cases, in_child
from tests.support.images import code_object
from tests.support.known import alloc

KIB, MIB = 1 << 10, 1 << 20


def free(mgpu: Mgpu, block, stream=None) -> None:
    mgpu.MemFree(block, stream or mgpu.null)


# ---- hits ----------------------------------------------------------------------------------------


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


#: HIP does not wait for the work of a stream that it destroys, and gives the handle to the next
#: stream.
RENEWED = {"HIPSTUB_REUSE": "1", "HIPSTUB_DESTROY_RETURNS": "1", "HIPSTUB_ASYNC": "held"}


@in_cases(("ours", "external"), **RENEWED)
def test_a_handle_that_comes_back_from_hip_is_another_stream(mgpu: Mgpu, whose: str) -> None:
    """The program has destroyed the stream by calling HIP, with pending work. A new stream then
    gets the old stream's handle. The new stream does not wait for the old stream's pending work,
    which still uses freed memory."""
    first = mgpu.StreamCreate() if whose == "ours" else mgpu.external_stream()
    block = alloc(mgpu, KIB, first)
    mgpu.Memset32(block, 1, KIB // 4, first)
    free(mgpu, block, first)
    mgpu.lib.mgpu_rt_use_stream(mgpu.null)
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(first)) == 0
    assert mgpu.StreamCreate() == first
    again = alloc(mgpu, KIB, first)
    assert again != block or mgpu.pending(first) == 0


# ---- shared with the host ------------------------------------------------------------------------


def shared(mgpu: Mgpu, size: int):
    return mgpu.MemAlloc(size, mgpu.null, True)


#: Answers of HIP to a request for managed memory, and what the program gets. A device without
#: managed memory gives error 801. HIP 7 keeps an error until the program reads it.
NO_MANAGED_MEMORY = {
    "none": ({"HIPSTUB_FAULT": "hipMallocManaged:*:801"}, ""),
    "none-7": ({"HIPSTUB_FAULT": "hipMallocManaged:*:801", "HIPSTUB_VERSION": "70000000"}, ""),
    "refused": (
        {"HIPSTUB_FAULT": "hipMallocManaged:*:1"},
        "'hipMalloc(&ptr, sizeBytes)' failed with 'hipErrorInvalidValue'\n",
    ),
}


@in_cases({name: env for name, (env, _) in NO_MANAGED_MEMORY.items()})
def test_without_managed_memory_shared_memory_is_that_of_stock(mgpu: Mgpu, name: str) -> None:
    said = NO_MANAGED_MEMORY[name][1]
    assert bool(shared(mgpu, 1000)) == (not said)
    assert mgpu.count("hipMalloc") == (not said)
    assert bool(mgpu.stub.hipGetLastError()) == bool(said)
    assert mgpu.stderr() == said


@in_child(MGPU_RT_MEMORY_LIMIT="256K")
def test_shared_memory_above_the_limit_is_given_back(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    blocks = [shared(mgpu, 200 * KIB) for _ in range(3)]
    assert mgpu.lib.mgpu_rt_empty_cache() == 0  # the program's
    for block in blocks:
        free(mgpu, block, stream)
    assert mgpu.stub.hipstub_live(b"bytes") <= 256 * KIB


@in_child(policies=("builtin",), backends=("stub", "softgpu"))
def test_shared_memory_serves_again_if_hip_numbers_it_by_32_bits(mgpu: Mgpu) -> None:
    """AMD's HIP 5.2.3 leaves the upper half of hipPointerAttributeBufferId as it was."""
    for _ in range(3):
        free(mgpu, shared(mgpu, KIB))
    assert mgpu.stats()["cache"]["memory"]["misses"] == 1


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
    assert alloc(mgpu, 1000 * KIB, streams[0])
    assert mgpu.counts("hipMalloc", "hipFree") == {"hipMalloc": 5, "hipFree": 3}
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
    assert mgpu.MemAlloc(1000 * KIB, mgpu.null, False) == mgpu.null
    assert mgpu.count("hipModuleUnload") == 1
    free(mgpu, held)


POINTS = [
    f"{function}:{point}:2"
    for function in ("hipMalloc", "hipHostMalloc", "hipMemcpyAsync", "hipFree")
    for point in range(1, 5)
]


@in_cases({fault: {"HIPSTUB_FAULT": fault} for fault in POINTS}, MGPU_RT_EXCLUSIVE="on")
def test_each_failure_leaves_no_leak_and_no_lost_block(mgpu: Mgpu, fault: str) -> None:
    """After the failed call, the work succeeds again, and the library returns all blocks to HIP."""
    data = mgpu.ffi.new("char[]", bytes(i % 251 for i in range(3 * KIB)))
    out, stream = mgpu.ffi.new("char[]", 3 * KIB), mgpu.StreamCreate()
    for _ in range(7):
        mgpu.stderr()
        for size in (KIB, 3 * KIB):
            if block := mgpu.MemAlloc(size, stream, False):
                mgpu.Memcpy(block, data, size, stream)
                mgpu.Memcpy(out, block, size, stream)
                mgpu.StreamSynchronize(stream)
                free(mgpu, block, stream)
        said = mgpu.stderr()
        assert said or mgpu.ffi.buffer(out)[:] == mgpu.ffi.buffer(data)[:-1]
        mgpu.lib.mgpu_rt_empty_cache()
    assert said == ""
    assert mgpu.stub.hipstub_live(b"allocations") <= fault.startswith("hipFree")
    assert mgpu.stub.hipstub_misuse() == 0


# ---- memory returned to HIP ----------------------------------------------------------------------


@in_child()
def test_empty_cache_gives_blocks_back_and_returns_their_size(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    held = alloc(mgpu, KIB, stream)
    for size in (KIB, 2 * KIB, 3 * KIB):
        free(mgpu, alloc(mgpu, size, stream), stream)
    assert mgpu.lib.mgpu_rt_empty_cache() == 3
    assert mgpu.stub.hipstub_live(b"bytes") == KIB
    free(mgpu, held, stream)
