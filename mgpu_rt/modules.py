"""Which modules stay loaded: the policy behind mgpuModuleLoad and mgpuModuleUnload.

The C library serves every repeated load from its table and comes here only for an image that it has
not seen. A module that the program has unloaded stays loaded for the next time, up to a limit.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs 3 ms of the first launch
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Runtime(Protocol):
        """What the cache asks of the C library (struct mgpu_host)."""

        def module_loads(self, handle: int) -> int: ...
        def module_references(self, handle: int) -> int: ...
        def module_retire(self, handle: int) -> bool: ...


class Module:
    """A module that HIP holds.

    `uses` and `last_use` are as of the cache's last look: a hit does not come by here, so the
    library's own count of loads tells whether there was any since.
    """

    __slots__ = ("device", "handle", "last_use", "size", "uses")

    def __init__(self, handle: int, size: int, device: int, tick: int) -> None:
        self.handle = handle
        self.size = size
        self.device = device
        self.uses = 0
        self.last_use = tick

    def __repr__(self) -> str:
        return f"<Module {self.handle:#x}, {self.size} bytes, device {self.device}>"


class ModuleCache:
    """The loaded modules, and the decision which of them leave.

    `load` and `unload` are HIP's (mgpu_rt.hip.Hip); `limit` is how many modules may stay loaded
    that the program does not hold. Called from any thread; the GIL is all the locking it needs,
    since every step between two calls of HIP is a single operation on a dict.
    """

    def __init__(
        self,
        runtime: Runtime,
        load: Callable[[object, object], int],
        unload: Callable[[int], int],
        limit: int,
    ) -> None:
        self._runtime = runtime
        self._load = load
        self._unload = unload
        self.limit = limit
        self._modules: dict[int, Module] = {}
        self._tick = 0

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(list(self._modules.values()))

    def references(self, handle: int) -> int:
        """Loads of the module that the program has not undone."""
        return self._runtime.module_references(handle)

    def load(self, image: object, module: object) -> int:
        """Loads an image; its handle goes to *module (both are pointers, of cffi or of a test).

        Makes room first, so that a program of ever new images holds at most `limit` idle ones.
        Returns hipError_t.
        """
        self._look()
        self.evict(room=1)
        return self._load(image, module)

    def add(self, handle: int, size: int, device: int) -> None:
        """Takes note of a module that was just loaded."""
        self._tick += 1
        self._modules[handle] = Module(handle, size, device, self._tick)

    def unload(self, handle: int) -> int:
        """Unloads a module that the library has taken out of its table. Returns hipError_t."""
        self._modules.pop(handle, None)
        return self._unload(handle)

    def evict(self, room: int = 0) -> int:
        """Unloads the least recently used idle modules beyond the limit; returns how many.

        A module that is held, or whose kernels may still run, stays: then more than `limit` are
        loaded for a while.
        """
        surplus = len(self._modules) + room - self.limit
        if surplus <= 0:
            return 0
        idle = [m for m in self if self._runtime.module_references(m.handle) == 0]
        surplus = len(idle) + room - self.limit
        evicted = 0
        for module in sorted(idle, key=lambda m: m.last_use)[: max(surplus, 0)]:
            if self._runtime.module_retire(module.handle):
                self.unload(module.handle)
                evicted += 1
        return evicted

    def _look(self) -> None:
        """Brings `uses` and `last_use` up to date. Costs 0.2 µs a module, on misses only."""
        self._tick += 1
        for module in self:
            uses = self._runtime.module_loads(module.handle)
            if uses != module.uses:
                module.uses, module.last_use = uses, self._tick
