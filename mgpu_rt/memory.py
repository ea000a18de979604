"""Which device memory stays with the process: the policy behind mgpuMemAlloc and mgpuMemFree.

The C library serves every repeated allocation from its pools and comes here only for one that no
cached block fits, and when more is held than MGPU_RT_MEMORY_LIMIT allows.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs 3 ms of the first launch
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Runtime(Protocol):
        """What the cache asks of the C library (struct mgpu_host)."""

        def memory_uses(self, address: int) -> int: ...
        def memory_retire(self, address: int) -> bool: ...


class Block:
    """Device memory that HIP has handed out.

    `uses` and `last_use` are as of the cache's last look: a hit does not come by here.
    """

    __slots__ = ("address", "device", "last_use", "size", "uses")

    def __init__(self, address: int, size: int, device: int, tick: int) -> None:
        self.address = address
        self.size = size
        self.device = device
        self.uses = 1
        self.last_use = tick

    def __repr__(self) -> str:
        return f"<Block {self.address:#x}, {self.size} bytes, device {self.device}>"


class BlockCache:
    """The blocks held from HIP, and the decision which of them go back.

    `alloc` and `free` are HIP's (mgpu_rt.hip.Hip). Called from any thread; the GIL is all the
    locking it needs, since every step between two calls of HIP is a single operation on a dict.
    """

    #: Goes back beyond the excess, as a part of what is held: a look at every block costs 0.2 µs
    #: each, and this keeps it from coming with each allocation.
    SLACK = 0.1

    def __init__(
        self,
        runtime: Runtime,
        alloc: Callable[[int, object], int],
        free: Callable[[int], int],
    ) -> None:
        self._runtime = runtime
        self._alloc = alloc
        self._free = free
        self._blocks: dict[int, Block] = {}
        self._tick = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self):
        return iter(list(self._blocks.values()))

    def reserved(self, device: int) -> int:
        """Bytes held from HIP on a device."""
        return sum(block.size for block in self if block.device == device)

    def alloc(self, size: int, ptr: object) -> int:
        """Asks HIP for a block; its address goes to *ptr. Returns hipError_t."""
        return self._alloc(size, ptr)

    def add(self, address: int, size: int, device: int) -> None:
        """Takes note of a block that HIP has just handed out."""
        self._tick += 1
        self._blocks[address] = Block(address, size, device, self._tick)

    def free(self, address: int) -> int:
        """Gives HIP a block that the library has taken out of its table. Returns hipError_t."""
        self._blocks.pop(address, None)
        return self._free(address)

    def trim(self, device: int, excess: int) -> int:
        """Gives back cached blocks of a device, least recently used first; returns how many bytes.

        Goes on until `excess` bytes and some slack are gone, or nothing cached is left: what the
        program holds stays.
        """
        self._look()
        blocks = sorted((b for b in self if b.device == device), key=lambda b: b.last_use)
        wanted = excess + int(self.SLACK * sum(block.size for block in blocks))
        freed = 0
        for block in blocks:
            if freed >= wanted:
                break
            if self._runtime.memory_retire(block.address):
                self.free(block.address)
                freed += block.size
        return freed

    def _look(self) -> None:
        """Brings `uses` and `last_use` up to date."""
        self._tick += 1
        for block in self:
            uses = self._runtime.memory_uses(block.address)
            if uses != block.uses:
                block.uses, block.last_use = uses, self._tick
