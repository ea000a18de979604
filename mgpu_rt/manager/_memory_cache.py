"""The device memory that stays cached."""

from __future__ import annotations

from collections.abc import Iterator

from mgpu_rt.manager._mirror import Entry, Mirror
from mgpu_rt.manager._protocol import Caches, Decision, Evict, Kind


class MemoryCache(Mirror):
    """The blocks that the library has allocated from HIP.

    The library itself limits the unused blocks on each device (MGPU_RT_MEMORY_LIMIT). A device may
    still be short of memory, because other processes use the device too. If a device is short of
    memory, the policy evicts blocks that were unused for a while. The policy begins with the least
    recently used block, and stops when the device has enough memory.
    """

    PATIENCE = 10.0  # the seconds for which a block must be unused before its eviction
    SPARE = 0.05  # the share of a device's memory that should be free

    def __init__(self, caches: Caches) -> None:
        super().__init__(Kind.BLOCK, caches.blocks)
        self._caches = caches

    def reserved(self, device: int) -> int:
        """Returns the bytes that the library has allocated from HIP on a device."""
        return sum(block.bytes for block in self if block.device == device)

    def decide(self) -> Iterator[Decision]:
        if not self.look():
            return
        old = self.clock() - self.PATIENCE
        unused = [block for block in self.idle() if block.last_use < old]
        for device in sorted({block.device for block in unused}):
            yield from self._relieve(device, [b for b in unused if b.device == device])

    def _relieve(self, device: int, unused: list[Entry]) -> Iterator[Evict]:
        memory = self._caches.memory(device)
        missing = int(self.SPARE * memory.total) - memory.available if memory else 0
        for block in unused:
            if missing <= 0:
                return
            missing -= block.bytes
            yield Evict(Kind.BLOCK, block.handle)
