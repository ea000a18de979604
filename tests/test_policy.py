"""What Python decides: which modules and streams stay."""

from __future__ import annotations

import pytest

from mgpu_rt.modules import ModuleCache
from mgpu_rt.streams import StreamPool
from tests.child import Mgpu, in_child
from tests.images import code_object

KERNEL = "test_func"


def variant(number: int) -> bytes:
    """A code object like no other: the number stands in the padding of its ELF identification."""
    image = bytearray(code_object("forum"))
    image[9:13] = number.to_bytes(4, "little")
    return bytes(image)


# ---- the cache by itself ----------------------------------------------------------------------


class FakeRuntime:
    """The C library's side: how often a module was loaded and unloaded."""

    def __init__(self) -> None:
        self.loads: dict[int, int] = {}
        self.unloads: dict[int, int] = {}
        self.busy = False

    def module_loads(self, handle: int) -> int:
        return self.loads.get(handle, 0)

    def module_references(self, handle: int) -> int:
        return self.loads.get(handle, 0) - self.unloads.get(handle, 0)

    def module_retire(self, handle: int) -> bool:
        return not self.busy and self.module_references(handle) == 0


class World:
    """A cache over a fake driver, and a program that uses modules by small numbers."""

    def __init__(self, limit: int) -> None:
        self.runtime = FakeRuntime()
        self.loaded: list[object] = []
        self.unloaded: list[int] = []
        self.cache = ModuleCache(self.runtime, self._load, self._unload, limit)

    def _load(self, image: object, _module: object) -> int:
        self.loaded.append(image)
        return 0

    def _unload(self, handle: int) -> int:
        self.unloaded.append(handle)
        return 0

    def miss(self, handle: int, *, keep: bool = False) -> None:
        assert self.cache.load(handle, None) == 0
        self.cache.add(handle, 100, 0)
        self.hit(handle, keep=keep)

    def hit(self, handle: int, *, keep: bool = False) -> None:
        self.runtime.loads[handle] = self.runtime.loads.get(handle, 0) + 1
        if not keep:
            self.runtime.unloads[handle] = self.runtime.unloads.get(handle, 0) + 1


def test_modules_within_the_limit_stay() -> None:
    world = World(limit=3)
    for handle in (1, 2, 3):
        world.miss(handle)
    assert world.unloaded == []
    assert [m.handle for m in world.cache] == [1, 2, 3]


def test_least_recently_used_leaves_first() -> None:
    world = World(limit=3)
    for handle in (1, 2, 3):
        world.miss(handle)
    world.hit(1)
    world.miss(4)
    assert world.unloaded == [2]
    world.hit(3)
    world.miss(5)
    assert world.unloaded == [2, 1]


def test_held_modules_do_not_leave() -> None:
    world = World(limit=2)
    for handle in range(1, 6):
        world.miss(handle, keep=True)
    assert world.unloaded == []
    world.miss(6)
    world.miss(7)
    world.miss(8)
    assert world.unloaded == [6]


def test_nothing_leaves_while_a_kernel_may_run() -> None:
    world = World(limit=1)
    world.runtime.busy = True
    for handle in range(1, 5):
        world.miss(handle)
    assert world.unloaded == []
    world.runtime.busy = False
    world.miss(5)
    assert world.unloaded == [1, 2, 3, 4]


def test_failed_load_is_not_kept() -> None:
    cache = ModuleCache(FakeRuntime(), lambda *_: 209, lambda _: 0, 4)
    assert cache.load(0, None) == 209
    assert len(cache) == 0


def test_limit_of_zero_keeps_nothing_idle() -> None:
    world = World(limit=0)
    world.miss(1)
    world.miss(2)
    assert world.unloaded == [1]


def test_first_stream_of_a_device_is_the_shared_one() -> None:
    destroyed: list[int] = []
    pool = StreamPool(lambda _stream: 0, lambda handle: destroyed.append(handle) or 0)
    for handle, device in ((10, 0), (11, 0), (20, 1)):
        assert pool.create(None) == 0
        pool.add(handle, device)
    assert (pool.shared(0), pool.shared(1), pool.shared(2)) == (10, 20, None)
    pool.destroy(10)
    assert (pool.shared(0), len(pool), destroyed) == (11, 2, [10])


# ---- the cache in the library -----------------------------------------------------------------


@in_child(policies=["python"], MGPU_RT_MODULE_LIMIT="2")
def test_idle_modules_are_bounded(mgpu: Mgpu) -> None:
    """A program of ever new images does not fill the device."""
    for number in range(20):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(number))))
        assert mgpu.stub.hipstub_live(b"modules") <= 3
    assert mgpu.count("hipModuleLoadData") == 20
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(policies=["python"], MGPU_RT_MODULE_LIMIT="1")
def test_what_the_program_holds_stays(mgpu: Mgpu) -> None:
    held = mgpu.load(mgpu.image(variant(0)))
    for number in range(1, 10):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(number))))
    assert mgpu.function(held, KERNEL)
    mgpu.launch(mgpu.function(held, KERNEL))
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(policies=["python"], MGPU_RT_MODULE_LIMIT="1", HIPSTUB_ASYNC="300000")
def test_running_kernel_keeps_its_module(mgpu: Mgpu) -> None:
    """LLVM 20 and older unload right after an asynchronous launch."""
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


@in_child(policies=["python"], MGPU_RT_MODULE_LIMIT="1")
def test_evicted_image_is_loaded_again(mgpu: Mgpu) -> None:
    """At the same address, with the same bytes: the slot that remembers it must not serve it."""
    buffers = [mgpu.image(variant(number)) for number in range(4)]
    for _ in range(3):
        for buffer in buffers:
            module = mgpu.load(buffer)
            mgpu.launch(mgpu.function(module, KERNEL))
            mgpu.StreamSynchronize(mgpu.null)
            mgpu.ModuleUnload(module)
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""
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
    """One thread creates, another destroys: the common pool brings them back."""
    import queue
    import threading

    handed: queue.Queue = queue.Queue(maxsize=4)
    stream = mgpu.StreamCreate()

    def consume() -> None:
        while (event := handed.get(timeout=20)) is not None:
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
def test_stream_chosen_from_outside(mgpu: Mgpu) -> None:
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipStreamCreate(own)
    chosen = mgpu.ffi.cast("hipStream_t", int(mgpu.stub_ffi.cast("uintptr_t", own[0])))
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


@in_child(policies=["python"], HIPSTUB_FAULT="hipModuleLoadData:1:2,hipStreamCreate:1:2")
def test_failure_in_the_driver_is_reported_and_tried_anew(mgpu: Mgpu) -> None:
    buffer = mgpu.image(code_object("forum"))
    assert not mgpu.load(buffer)
    assert "'hipModuleLoadData(&module, data)' failed with 'hipErrorOutOfMemory'" in mgpu.stderr()
    assert not mgpu.StreamCreate()
    assert "'hipStreamCreate(&stream)' failed with 'hipErrorOutOfMemory'" in mgpu.stderr()
    assert mgpu.load(buffer)
    assert mgpu.StreamCreate()
    assert mgpu.stderr() == ""


@pytest.mark.parametrize("name", ["modules", "streams"])
def test_policy_modules_import_nothing_heavy(name: str) -> None:
    """They are on the path of the first launch."""
    import subprocess
    import sys

    script = f"import sys; import mgpu_rt.{name}; print('typing' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append('.'); {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "False\n"
