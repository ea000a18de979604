"""The modules that stay loaded."""

from __future__ import annotations

from collections.abc import Iterator

from mgpu_rt.manager._mirror import Entry, Mirror
from mgpu_rt.manager._protocol import Caches, Decision, Evict, Kind, Pin


class ModuleCache(Mirror):
    """The loaded modules.

    If idle modules exceed the library's limit, the library unloads the least recently used modules
    first. A flood of modules that are used only once would evict modules in repeated use. So this
    cache pins modules in repeated use, up to half of the limit.
    """

    #: Bounds for a module's count of uses. Each reading of the library's list halves the count
    #: before adding the new uses. A module is in repeated use from the moment when the count
    #: reaches HOT until the count falls below COLD.
    HOT, COLD = 2.0, 0.1
    #: The share of the limit that pinned modules may use.
    SHARE = 0.5

    def __init__(self, caches: Caches) -> None:
        super().__init__(Kind.MODULE, caches.modules)
        self._caches = caches

    def decide(self) -> Iterator[Decision]:
        if not self.look():
            return
        limit = self._caches.limits().module_bytes
        yield from self._pin(int(limit * self.SHARE))
        yield from self._evict(limit)

    def _pin(self, room: int) -> Iterator[Pin]:
        """Pins the most used modules, at most `room` bytes in total."""
        for module in sorted(self, key=lambda m: (-m.heat, m.handle)):
            hot = module.heat >= (self.COLD if module.pinned else self.HOT)
            keep = hot and module.bytes <= room
            if keep:
                room -= module.bytes
            if keep != module.pinned:
                module.pinned = keep
                yield Pin(module.handle, keep)

    def _evict(self, limit: int) -> Iterator[Evict]:
        """Evicts modules that the library could not unload earlier because their kernels were
        running."""
        idle = self.idle()
        surplus = sum(module.bytes for module in idle) - limit
        for module in idle:
            if surplus <= 0:
                return
            if not module.pinned:
                surplus -= module.bytes
                yield Evict(Kind.MODULE, module.handle)

    def pinned(self) -> list[Entry]:
        """Returns the pinned modules, to which the library does not apply its limit."""
        return [module for module in self if module.pinned]
