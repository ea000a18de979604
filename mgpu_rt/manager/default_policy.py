"""The policy that ships."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mgpu_rt.manager.memory_cache import MemoryCache
from mgpu_rt.manager.module_cache import ModuleCache
from mgpu_rt.manager.protocol import Caches, Decision, Event
from mgpu_rt.manager.stream_cache import StreamCache


class Shipped:
    """Three caches, each a mirror of the library's.

    The library keeps its limits by itself, in the order of last use. This one adds what takes
    a longer look: modules that are used again and again survive a flood of modules that are used
    once, and what was long unused goes back where a device is short of memory.
    """

    def __init__(self, caches: Caches) -> None:
        self.modules = ModuleCache(caches)
        self.streams = StreamCache(caches)
        self.memory = MemoryCache(caches)

    def set_clock(self, clock: Callable[[], float]) -> None:
        """Where the time in seconds comes from; by default time.monotonic."""
        for cache in (self.modules, self.streams, self.memory):
            cache.clock = clock

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        for cache in (self.modules, self.streams, self.memory):
            cache.note(events, complete)
            yield from cache.decide()
