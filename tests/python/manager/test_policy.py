"""A policy in Python decides which modules, streams and blocks the caches retain. Without Python,
the C library itself applies the limits."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from mgpu_rt.manager import CachedObject, Caches, Decision, DefaultPolicy, Evict, Limits, Pin
from tests.python.launches import EXAMPLES
from tests.support import child
from tests.support.child import POLICIES, Mgpu
from tests.support.images import code_object
from tests.support.patience import wait_until

in_child = functools.partial(child.in_child, policies=POLICIES)

KERNEL = "test_func"


def variant(number: int) -> bytes:
    """Returns a unique code object, with the number in the padding of its ELF identification."""
    image = bytearray(code_object("forum"))
    image[9:13] = number.to_bytes(4, "little")
    return bytes(image)


# ---- the policy by itself -----------------------------------------------------------------------


class World:
    """Imitates the library without a device: a table of modules and a clock."""

    def __init__(self) -> None:
        self.modules: dict[int, CachedObject] = {}
        self.limit = 1000
        self.now = 100.0
        self.policy = DefaultPolicy(lambda: self.now)

    def load(self, *handles: int, size: int = 100, uses: int = 1) -> None:
        for handle in handles:
            self.modules[handle] = CachedObject(handle, size, uses, 0, True)

    def use(self, handle: int, times: int) -> None:
        old = self.modules[handle]
        self.modules[handle] = old._replace(uses=old.uses + times)

    def drop(self, *handles: int) -> None:
        for handle in handles:
            self.modules[handle] = self.modules[handle]._replace(held=False)

    def turn(self, seconds: float = 1.0) -> list[Decision]:
        """Advances the clock, lets the policy decide, and executes the evictions."""
        self.now += seconds
        caches = Caches(list(self.modules.values()), [], [], Limits(self.limit, 32, {}))
        decisions = list(self.policy.decide(caches))
        for decision in decisions:
            if isinstance(decision, Evict):
                assert not self.modules.pop(decision.handle).held
        return decisions


def evictions(decisions: Iterable[Decision]) -> list[int]:
    return [decision.handle for decision in decisions if isinstance(decision, Evict)]


def pins(decisions: Iterable[Decision]) -> dict[int, bool]:
    return {d.handle: d.pinned for d in decisions if isinstance(d, Pin)}


def test_modules_that_come_back_are_pinned() -> None:
    """Many modules that are used once do not evict a module that is used repeatedly."""
    world = World()
    world.load(1, 2)
    world.drop(1, 2)
    world.turn()
    world.use(1, 10)
    assert pins(world.turn()) == {1: True}
    world.load(*range(10, 20))
    world.drop(*range(10, 20))
    assert 1 not in evictions(world.turn())
    assert 1 in world.modules


def test_pins_end_when_modules_no_longer_come_back() -> None:
    world = World()
    world.load(1, uses=11)
    assert pins(world.turn()) == {1: True}
    seen: dict[int, bool] = {}
    for _ in range(20):
        seen.update(pins(world.turn(10)))
    assert seen == {1: False}


def test_pins_take_half_of_the_limit_at_most() -> None:
    world = World()
    for handle in range(1, 11):
        world.load(handle, uses=10 + handle)
    assert pins(world.turn()) == dict.fromkeys((6, 7, 8, 9, 10), True)


def test_surplus_modules_leave_least_recently_used_first() -> None:
    """If the modules exceed the limit, the policy first evicts the modules that the program has not
    used for the longest time."""
    world = World()
    for handle in range(1, 13):
        world.load(handle)
        world.drop(handle)
        world.turn()
    assert set(world.modules) == set(range(3, 13))


def test_held_things_do_not_leave() -> None:
    world = World()
    world.limit = 100
    world.load(*range(1, 6))
    assert evictions(world.turn()) == []


def test_a_handle_that_comes_again_starts_anew() -> None:
    """HIP may give a new module the handle of an unloaded one."""
    world = World()
    world.load(1, uses=11)
    assert pins(world.turn()) == {1: True}
    del world.modules[1]
    world.turn()
    world.load(1)
    assert pins(world.turn()) == {}


# ---- the cache in the library -----------------------------------------------------------------


@in_child(MGPU_RT_MODULE_LIMIT="120K")
def test_idle_modules_are_bounded(mgpu: Mgpu) -> None:
    """A program that loads only new images does not fill the device. The limit of 120 KB admits two
    images of 53 KB."""
    for number in range(80):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(variant(number))))
        assert mgpu.stub.hipstub_live(b"modules") <= 3
    assert mgpu.count("hipModuleLoadData") == 80
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


# ---- the policy among the examples ----


@in_child(policies=("python",), MGPU_RT_POLICY="policy:KeepLarge", PYTHONPATH=str(EXAMPLES))
def test_the_example_is_a_policy(mgpu: Mgpu) -> None:
    """The example keeps one of two idle streams."""
    for stream in [mgpu.StreamCreate(), mgpu.StreamCreate()]:
        mgpu.StreamDestroy(stream)
    assert wait_until(lambda: mgpu.count("hipStreamDestroy") == 1)
    assert "failed" not in mgpu.stderr()
