"""Defines the owner of an allocation; the owner frees the allocation when the last array is
gone."""

from __future__ import annotations

import weakref

from mgpu_rt._arrays.work import Work
from mgpu_rt._library import load
from mgpu_rt.runtime._hip import Hip


class Memory:
    """Memory of the host or of the device. The memory is freed when the last reference to this
    object is gone. At exit this object does not free the memory, because another package's array
    may still use the memory."""

    def __init__(self, address: int, device: int | None) -> None:
        """`device` is None for memory of the host."""
        self.address, self.device, self.work = address, device, Work()
        if device is not None:
            # A free that names no stream waits for the device: for this package's work, and for
            # the work of other packages that share the memory.
            load().finalize(self, load().mgpuMemFree, address, 0)
        else:
            weakref.finalize(self, load().free, address).atexit = False


def allocate(size: int) -> Memory:
    """Allocates device memory. Raises HipError."""
    library = load()
    failure = f"there are no {size:,} bytes of device memory"
    address = library.checked(failure, library.mgpuMemAlloc, size, 0, False)
    return Memory(address, Hip.of_process().device())
