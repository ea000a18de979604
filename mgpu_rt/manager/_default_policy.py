"""The default policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mgpu_rt.manager._memory_cache import MemoryCache
from mgpu_rt.manager._module_cache import ModuleCache
from mgpu_rt.manager._protocol import Caches, Decision, Event


class DefaultPolicy:
    """Decides with two caches, which mirror the library's module cache and memory cache.

    The library itself enforces its limits, and evicts the least recently used objects first. The
    policy adds two decisions that would take too long in the library. Modules in repeated use
    survive a flood of modules that are used only once. Blocks that were unused for a long time are
    evicted if their device is short of memory.
    """

    def __init__(self, caches: Caches) -> None:
        self.modules = ModuleCache(caches)
        self.memory = MemoryCache(caches)

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        for cache in (self.modules, self.memory):
            cache.note(events, complete)
            yield from cache.decide()
