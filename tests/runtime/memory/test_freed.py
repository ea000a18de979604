"""When the cache hands out freed memory again, and how much freed memory stays cached."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.child import Mgpu, in_cases, in_child
from tests.support.known import alloc, forum

KIB, MIB = 1 << 10, 1 << 20
HELD = {"HIPSTUB_ASYNC": "held"}


def at_work(mgpu: Mgpu, block, size: int):
    """Returns a new stream that is working on a block."""
    stream = mgpu.StreamCreate()
    mgpu.Memset32(block, 0x07070707, size // 4, stream)
    return stream


# ---- freed on one stream while other streams work ------------------------------------------------


@in_child(**HELD, HIPSTUB_FAULT="hipDeviceSynchronize:*:900")
def test_a_block_that_hip_cannot_wait_for_is_not_kept(mgpu: Mgpu) -> None:
    """While another thread captures a stream, HIP refuses to wait for the device. The library then
    frees the block by calling hipFree, as stock does."""
    block = alloc(mgpu, KIB)
    at_work(mgpu, block, KIB)
    mgpu.MemFree(block, mgpu.null)
    assert alloc(mgpu, KIB) != block
    assert mgpu.counts("hipFree", "hipDeviceSynchronize") == {
        "hipFree": 1,
        "hipDeviceSynchronize": 1,
    }
    assert (mgpu.stderr(), mgpu.stub.hipGetLastError()) == ("", 0)


@in_child(**HELD)
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


#: Streams that work on a block while the program frees it on another stream. A row says how the
#: program makes and ends the stream, and has variables. With LLVM 24, gpu.launch accepts a stream
#: that the program created by calling HIP. HIP may destroy a stream without a wait, and give its
#: handle to a new stream. A wait for this handle would then prove nothing about the block.
RETURNS = {"HIPSTUB_DESTROY_RETURNS": "1"}
RENEWED = {**RETURNS, "HIPSTUB_REUSE": "1"}


def destroy_by_hip(mgpu: Mgpu, stream, renew: Callable[[], object]) -> None:
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(stream)) == 0
    assert renew() == stream


def replace_by_another_kind(mgpu: Mgpu, stream) -> None:
    destroy_by_hip(mgpu, stream, lambda: mgpu.hip_stream(1))
    mgpu.StreamDestroy(stream)


AT_WORK: dict[str, tuple[Callable, Callable, dict[str, str]]] = {
    "made-by-hip": (lambda m: m.hip_stream(1), lambda m, s: None, {}),
    "no-longer-external": (
        lambda m: m.external_stream(1),
        lambda m, s: m.lib.mgpu_rt_use_stream(m.null),
        {},
    ),
    "destroyed": (
        lambda m: m.StreamCreate(),
        lambda m, s: m.StreamDestroy(s),
        {**RETURNS, "MGPU_RT_STREAM_LIMIT": "0"},
    ),
    "renewed": (
        lambda m: m.StreamCreate(),
        lambda m, s: destroy_by_hip(m, s, m.StreamCreate),
        RENEWED,
    ),
    "replaced": (lambda m: m.StreamCreate(), replace_by_another_kind, RENEWED),
}


@in_cases({name: env for name, (_, _, env) in AT_WORK.items()}, **HELD)
def test_a_block_waits_for_a_stream_that_hip_can_say_nothing_of(mgpu: Mgpu, name: str) -> None:
    """The cache does not hand out the block before it has waited for the device."""
    make, end, _ = AT_WORK[name]
    stream, other = mgpu.StreamCreate(), make(mgpu)
    block = alloc(mgpu, KIB, stream)
    mgpu.Memset32(block, 0x07070707, KIB // 4, other)
    end(mgpu, other)
    waits = mgpu.count("hipDeviceSynchronize")
    mgpu.MemFree(block, stream)
    assert mgpu.count("hipDeviceSynchronize") == waits  # the free has not waited
    assert alloc(mgpu, KIB, stream) != block
    mgpu.MemFree(alloc(mgpu, MIB), mgpu.null)
    assert mgpu.count("hipDeviceSynchronize") == waits + 1
    assert alloc(mgpu, KIB, stream) == block


@in_child(**HELD, HIPSTUB_DEVICES="2")
def test_a_stream_of_the_programs_may_be_of_another_device_than_the_current_one(
    mgpu: Mgpu,
) -> None:
    other, stream = mgpu.hip_stream(1), mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.SetDefaultDevice(1)
    mgpu.Memset32(block, 1, KIB // 4, other)
    mgpu.SetDefaultDevice(0)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) != block


@in_child(**HELD)
def test_a_block_waits_for_the_null_stream(mgpu: Mgpu) -> None:
    """A question to AMD's HIP about the null stream would delay all other streams. So the block
    waits until the program waits for the null stream or for the device, through the library."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    for synchronize in (
        lambda: mgpu.StreamSynchronize(mgpu.null),
        lambda: mgpu.MemFree(alloc(mgpu, MIB), mgpu.null),
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


@in_child(HIPSTUB_ASYNC="0")
def test_beyond_256_blocks_a_free_waits_as_stocks(mgpu: Mgpu) -> None:
    """The library does not ask HIP about the null stream."""
    stream, function = mgpu.StreamCreate(), forum(mgpu)
    for _ in range(1000):
        mgpu.launch(function, mgpu.null)  # never synchronised
        mgpu.MemFree(alloc(mgpu, KIB, stream), stream)
    assert mgpu.stub.hipstub_live(b"allocations") <= 258
    assert 3 <= mgpu.count("hipDeviceSynchronize") <= 4


MOVED = {"HIPSTUB_DEVICES": "2", "HIPSTUB_REUSE": "1", "HIPSTUB_DESTROY_RETURNS": "1"}


@in_cases({"at work": {}, "waited": {}, "destroyed": {}}, **HELD, **MOVED)
def test_a_block_waits_for_a_stream_that_hip_has_made_on_another_device(
    mgpu: Mgpu, case: str
) -> None:
    """The program has destroyed our stream by calling HIP, and has made a stream of this device
    under the handle. The program may also wait for the device of our stream, or destroy the new
    stream."""
    mgpu.SetDefaultDevice(1)
    elsewhere = mgpu.StreamCreate()
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(elsewhere)) == 0
    mgpu.SetDefaultDevice(0)
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipStreamCreateWithFlags(own, 1) == 0
    assert mgpu.from_stub(own[0]) == elsewhere
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.Memset32(block, 0x07070707, KIB // 4, elsewhere)
    if case == "waited":
        mgpu.SetDefaultDevice(1)
        mgpu.MemFree(alloc(mgpu, MIB, mgpu.null), mgpu.null)
        mgpu.SetDefaultDevice(0)
        assert mgpu.count("hipDeviceSynchronize") == 1
    if case == "destroyed":
        mgpu.StreamDestroy(elsewhere)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) != block


@in_child(**HELD, HIPSTUB_DEVICES="2", MGPU_RT_EXCLUSIVE="on")
def test_a_stream_of_another_device_is_not_waited_for(mgpu: Mgpu) -> None:
    """No other code can have replaced the stream by one of the block's device."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.SetDefaultDevice(1)
    there = mgpu.StreamCreate()
    mgpu.launch(forum(mgpu), there)
    mgpu.SetDefaultDevice(0)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) == block


# ---- many streams --------------------------------------------------------------------------------


@in_cases(("16", "64", "256"), MGPU_RT_EXCLUSIVE="on")
def test_a_block_is_found_on_whichever_stream_it_was_freed(mgpu: Mgpu, number: str) -> None:
    """The program holds the streams, and uses them in turn. A second stream waits for the work of
    the first, and frees the block."""
    count = int(number)
    streams = [mgpu.StreamCreate() for _ in range(count)]
    for step in range(3 * count):
        first, second = streams[step % count], streams[(step * 7 + 3) % count]
        for size in (KIB, 256 * KIB):
            block = alloc(mgpu, size, first)
            mgpu.Memset32(block, 1, 16, first)
            event = mgpu.EventCreate()
            mgpu.EventRecord(event, first)
            mgpu.StreamWaitEvent(second, event)
            mgpu.Memset32(block, 2, 16, second)
            mgpu.EventDestroy(event)
            mgpu.StreamSynchronize(second)
            mgpu.MemFree(block, second)
    assert mgpu.count("hipMalloc") == 2
    assert alloc(mgpu, 200 * KIB, streams[0]) == block  # a larger block serves the request


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


@in_child(MGPU_RT_MEMORY_LIMIT="64K")
def test_small_memory_that_the_program_got_again_does_not_count(mgpu: Mgpu) -> None:
    """The library does not count hits of small blocks. The frees exceed the limit many times, but
    only one block is ever idle."""
    stream = mgpu.StreamCreate()
    blocks = [alloc(mgpu, 4096, stream) for _ in range(64)]
    for number in range(512):
        place = number % len(blocks)
        mgpu.MemFree(blocks[place], stream)
        blocks[place] = alloc(mgpu, 4096, stream)
    assert mgpu.counts("hipMalloc", "hipFree") == {"hipMalloc": 64, "hipFree": 0}


@in_child(HIPSTUB_MEMORY=str(16 * MIB))
def test_an_impossible_allocation_empties_no_cache(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.MemFree(alloc(mgpu, MIB, stream), stream)
    assert mgpu.MemAlloc(17 * MIB, stream, False) == mgpu.null
    assert mgpu.count("hipFree") == 0
    assert mgpu.stub.hipGetLastError() == 2
