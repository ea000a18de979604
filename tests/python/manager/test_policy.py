"""A policy in Python decides which modules, streams and blocks the caches retain. Without Python,
the C library itself applies the limits."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from mgpu_rt.manager import (
    CachedObject,
    Caches,
    Decision,
    DefaultPolicy,
    Event,
    EventKind,
    Evict,
    Kind,
    Limits,
    Memory,
    Pin,
    Policy,
)
from mgpu_rt.manager._memory_cache import MemoryCache
from mgpu_rt.manager._mirror import Mirror
from mgpu_rt.manager._module_cache import ModuleCache
from tests.support import child
from tests.support.child import POLICIES, Mgpu
from tests.support.images import code_object
from tests.support.patience import HANG

in_child = functools.partial(child.in_child, policies=POLICIES)

KERNEL = "test_func"


def variant(number: int) -> bytes:
    """Returns a unique code object, with the number in the padding of its ELF identification."""
    image = bytearray(code_object("forum"))
    image[9:13] = number.to_bytes(4, "little")
    return bytes(image)


# ---- the policy by itself -----------------------------------------------------------------------


class World:
    """Imitates the library without a device. The class has a table of objects, a clock, and one of
    the policy's caches."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.table: dict[int, CachedObject] = {}
        self.limit = 1000
        self.free: dict[int, int] = {}
        self.now = 100.0
        self.events: list[Event] = []
        self.asked = 0
        made = {Kind.MODULE: ModuleCache, Kind.BLOCK: MemoryCache}
        self.cache: Mirror = made[kind](self)  # type: ignore[arg-type]
        self.cache.clock = lambda: self.now

    # The queries that the cache makes (mgpu_rt.manager.Caches).

    def read(self) -> list[CachedObject]:
        self.asked += 1
        return list(self.table.values())

    modules = streams = blocks = read

    def limits(self) -> Limits:
        return Limits(self.limit, 32, {})

    def memory(self, device: int) -> Memory | None:
        return Memory(self.free[device], 1000) if device in self.free else None

    # The actions of the program.

    def get(self, handle: int, size: int = 100, device: int = 0, *, told: bool = True) -> None:
        self.table[handle] = CachedObject(handle, size, 1, device, True)
        if told:
            self.tell(2 * self.kind, handle, size, device)

    def use(self, handle: int, times: int = 1, *, held: bool = False) -> None:
        old = self.table[handle]
        self.table[handle] = old._replace(uses=old.uses + times, held=held)

    def drop(self, *handles: int) -> None:
        for handle in handles:
            self.table[handle] = self.table[handle]._replace(held=False)

    def give_back(self, handle: int) -> None:
        old = self.table.pop(handle)
        self.tell(2 * self.kind + 1, handle, old.bytes, old.device)

    def tell(self, what: int, handle: int, size: int, device: int) -> None:
        self.events.append(Event(EventKind(what), handle, size, device, 0))

    # The decisions of the cache.

    def turn(self, seconds: float = 1.0, *, complete: bool = True) -> list[Decision]:
        """Advances the clock, lets the cache decide, and executes the evictions."""
        self.now += seconds
        events, self.events = self.events, []
        self.cache.note(events, complete)
        decisions = list(self.cache.decide())
        for decision in decisions:
            if isinstance(decision, Evict) and not self.table[decision.handle].held:
                self.give_back(decision.handle)
        return decisions


def evictions(decisions: Iterable[Decision]) -> list[int]:
    return [decision.handle for decision in decisions if isinstance(decision, Evict)]


def pins(decisions: Iterable[Decision]) -> dict[int, bool]:
    return {d.handle: d.pinned for d in decisions if isinstance(d, Pin)}


def test_a_mirror_follows_the_events() -> None:
    world = World(Kind.MODULE)
    for handle in (1, 2, 3):
        world.get(handle)
    world.tell(EventKind.STREAM_CREATED, 9, 100, 0)
    world.turn()
    assert [entry.handle for entry in world.cache] == [1, 2, 3]
    world.give_back(2)
    world.turn()
    assert (len(world.cache), 2 in world.cache) == (2, False)


def test_a_mirror_is_put_right_where_events_were_lost() -> None:
    world = World(Kind.MODULE)
    world.get(1)
    world.turn()
    world.get(2, told=False)
    del world.table[1]
    world.turn(0.1, complete=False)
    assert [entry.handle for entry in world.cache] == [2]


def test_looks_are_rare_while_nothing_happens() -> None:
    world = World(Kind.MODULE)
    world.get(1)
    world.drop(1)
    for _ in range(100):
        world.turn(1.0)
    assert world.asked <= 13
    world.asked = 0
    for _ in range(10):
        world.get(2)
        world.give_back(2)
        world.turn(0.02)
    assert world.asked <= 1


def test_modules_that_come_back_are_pinned() -> None:
    """Many modules that are used once do not evict a module that is used repeatedly."""
    world = World(Kind.MODULE)
    world.get(1)
    world.get(2)
    world.drop(1, 2)
    world.turn()
    world.use(1, 10)
    decisions = world.turn(10)
    assert pins(decisions) == {1: True}
    for handle in range(10, 20):
        world.get(handle)
        world.drop(handle)
    decisions = world.turn()
    assert 1 not in evictions(decisions)
    assert world.table[1]


def test_pins_end_when_modules_no_longer_come_back() -> None:
    world = World(Kind.MODULE)
    world.get(1)
    world.use(1, 10)
    decisions = world.turn()
    assert pins(decisions) == {1: True}
    seen: dict[int, bool] = {}
    for _ in range(20):
        seen.update(pins(world.turn(10)))
    assert seen == {1: False}


def test_pins_take_half_of_the_limit_at_most() -> None:
    world = World(Kind.MODULE)
    for handle in range(1, 11):
        world.get(handle, 100)
        world.use(handle, 10 + handle)
    assert pins(world.turn()) == dict.fromkeys((6, 7, 8, 9, 10), True)


def test_surplus_modules_leave_least_recently_used_first() -> None:
    """If the modules exceed the limit, the policy first evicts the modules that the program has not
    used for the longest time."""
    world = World(Kind.MODULE)
    for handle in range(1, 13):
        world.get(handle)
        world.drop(handle)
        world.turn()
    assert set(world.table) == set(range(3, 13))


def test_held_things_do_not_leave() -> None:
    world = World(Kind.MODULE)
    world.limit = 100
    for handle in range(1, 6):
        world.get(handle)
    assert evictions(world.turn()) == []


def test_blocks_go_back_where_the_device_is_short() -> None:
    world = World(Kind.BLOCK)
    world.free = {0: 20, 1: 500}
    for handle, device in ((1, 0), (2, 0), (3, 0), (4, 1)):
        world.get(handle, 20, device)
    world.turn()
    assert world.cache.reserved(0) == 60  # type: ignore[attr-defined]
    world.drop(1, 2, 4)
    world.turn(1)
    assert set(world.table) == {1, 2, 3, 4}  # the policy used these a moment ago
    world.turn(30)
    assert set(world.table) == {3, 4}


def test_blocks_stay_where_the_driver_does_not_say() -> None:
    world = World(Kind.BLOCK)
    world.get(1)
    world.drop(1)
    for _ in range(10):
        assert world.turn(30) == []


def test_shipped_policy_keeps_to_the_protocol() -> None:
    world = World(Kind.MODULE)
    caches: Caches = world
    policy: Policy = DefaultPolicy(caches)
    assert isinstance(policy, Policy)
    assert list(policy.decide([Event(EventKind.MODULE_LOADED, 1, 10, 0, 0)], False)) == []


# ---- the cache in the library -----------------------------------------------------------------


@in_child(MGPU_RT_MODULE_LIMIT="120K")
def test_idle_modules_are_bounded(mgpu: Mgpu) -> None:
    """A program that loads only new images does not fill the device. The limit of 120 KB admits two
    images of 53 KB."""
    for number in range(80):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(number))))
        assert mgpu.stub.hipstub_live(b"modules") <= 2 + 16  # the library checks at every 16 misses
    assert mgpu.count("hipModuleLoadData") == 80
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(MGPU_RT_MODULE_LIMIT="1")
def test_objects_that_the_program_holds_stay(mgpu: Mgpu) -> None:
    held = mgpu.load(mgpu.image(variant(0)))
    for number in range(1, 10):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(number))))
    assert mgpu.function(held, KERNEL)
    mgpu.launch(mgpu.function(held, KERNEL))
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(MGPU_RT_MODULE_LIMIT="160K", HIPSTUB_ASYNC="held")
def test_running_kernel_keeps_its_module(mgpu: Mgpu) -> None:
    """LLVM 20 and older unload the module right after an asynchronous launch."""
    stream = mgpu.StreamCreate()
    first = mgpu.load(mgpu.image(variant(0)))
    mgpu.launch(mgpu.function(first, KERNEL), stream)
    mgpu.ModuleUnload(first)
    for number in range(1, 5):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(number))))
    assert mgpu.count("hipModuleUnload") == 0
    mgpu.StreamSynchronize(stream)
    mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(9))))
    assert mgpu.count("hipModuleUnload") > 0
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(MGPU_RT_MODULE_LIMIT="1")
def test_evicted_image_is_loaded_again(mgpu: Mgpu) -> None:
    """The new image has the address and the content of the evicted module's image, but the library
    must load a new module."""
    buffers = [mgpu.image(variant(number)) for number in range(4)]
    for _ in range(3):
        for buffer in buffers:
            module = mgpu.load(buffer)
            mgpu.launch(mgpu.function(module, KERNEL))
            mgpu.StreamSynchronize(mgpu.null)
            mgpu.ModuleUnload(module)
    assert mgpu.stub.hipstub_misuse() == 0
    assert "failed" not in mgpu.stderr()  # a line may tell that the limit is raised
    assert mgpu.count("hipModuleUnload") > 4


@in_child(MGPU_RT_STREAM_LIMIT="3")
def test_idle_streams_are_bounded(mgpu: Mgpu) -> None:
    for _ in range(3):
        streams = [mgpu.StreamCreate() for _ in range(10)]
        assert len(set(streams)) == 10
        for stream in streams:
            mgpu.StreamDestroy(stream)
        assert mgpu.stub.hipstub_live(b"streams") <= 4
    assert mgpu.stub.hipstub_misuse() == 0


@in_child()
def test_empty_cache_gives_back_what_nobody_holds(mgpu: Mgpu) -> None:
    idle, held = mgpu.load(mgpu.image(variant(0))), mgpu.load(mgpu.image(variant(1)))
    function = mgpu.function(held, KERNEL)
    mgpu.ModuleUnload(idle)
    streams = [mgpu.StreamCreate(), mgpu.StreamCreate()]
    mgpu.StreamDestroy(streams[1])
    mgpu.EventDestroy(mgpu.EventCreate())
    assert mgpu.lib.mgpu_rt_empty_cache() == 3
    assert mgpu.counts("hipModuleUnload", "hipStreamDestroy", "hipEventDestroy") == {
        "hipModuleUnload": 1,
        "hipStreamDestroy": 1,
        "hipEventDestroy": 1,
    }
    mgpu.launch(function, streams[0])
    mgpu.StreamSynchronize(streams[0])
    assert mgpu.lib.mgpu_rt_empty_cache() == 0
    assert mgpu.load(mgpu.image(variant(0)))
    assert mgpu.stub.hipstub_misuse() == 0


@in_child()
def test_events_are_reused_across_threads(mgpu: Mgpu) -> None:
    """One thread creates events and another thread destroys them; the common pool returns these
    events to the first thread."""
    import queue
    import threading

    handed: queue.Queue = queue.Queue(maxsize=4)
    stream = mgpu.StreamCreate()

    def consume() -> None:
        while (event := handed.get(timeout=HANG)) is not None:
            mgpu.StreamWaitEvent(stream, event)
            mgpu.EventDestroy(event)

    consumer = threading.Thread(target=consume)
    consumer.start()
    for _ in range(500):
        event = mgpu.EventCreate()
        mgpu.EventRecord(event, stream)
        handed.put(event)
    handed.put(None)
    consumer.join()
    assert mgpu.count("hipEventCreateWithFlags") < 50
    assert mgpu.stub.hipstub_misuse() == 0


@in_child()
def test_a_lent_stream_is_used(mgpu: Mgpu) -> None:
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipStreamCreate(own)
    chosen = mgpu.from_stub(own[0], "hipStream_t")
    assert mgpu.lib.mgpu_rt_use_stream(chosen) == 0
    for _ in range(2):
        assert mgpu.StreamCreate() == chosen
        mgpu.StreamDestroy(chosen)
    assert mgpu.lib.mgpu_rt_use_stream(mgpu.null) == 0
    assert mgpu.StreamCreate() != chosen
    assert mgpu.count("hipStreamDestroy") == 0
    mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.stub.hipStreamSynchronize(own[0]) == 0


@in_child(MGPU_RT_CACHE="off")
def test_cache_off_is_stock_call_for_call(mgpu: Mgpu) -> None:
    buffer = mgpu.image(code_object("forum"))
    for _ in range(3):
        module = mgpu.load(buffer)
        function = mgpu.function(module, KERNEL)
        stream = mgpu.StreamCreate()
        event = mgpu.EventCreate()
        mgpu.launch(function, stream)
        mgpu.EventRecord(event, stream)
        mgpu.StreamSynchronize(stream)
        mgpu.EventDestroy(event)
        mgpu.StreamDestroy(stream)
        mgpu.ModuleUnload(module)
    assert mgpu.stub.hipstub_calls() == 3 * 10
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(
    HIPSTUB_FAULT="hipModuleLoadData:1:2,hipModuleLoadData:2:2,hipStreamCreate:1:2,hipStreamCreate:2:2"
)
def test_failure_in_the_driver_is_reported_and_tried_anew(mgpu: Mgpu) -> None:
    buffer = mgpu.image(code_object("forum"))
    assert not mgpu.load(buffer)
    assert "'hipModuleLoadData(&module, data)' failed with 'hipErrorOutOfMemory'" in mgpu.stderr()
    assert not mgpu.StreamCreate()
    assert "'hipStreamCreate(&stream)' failed with 'hipErrorOutOfMemory'" in mgpu.stderr()
    assert mgpu.load(buffer)
    assert mgpu.StreamCreate()
    assert mgpu.stderr() == ""
