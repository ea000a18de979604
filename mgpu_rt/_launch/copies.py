"""Copies of host arrays on the device, for one launch or one call of a lowered function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mgpu_rt._launch.arrays import Array
from mgpu_rt._library import RuntimeLibrary

# ---- wrappers by which users describe an argument ----


@dataclass(frozen=True, eq=False)
class In:
    """An array that the kernel only reads. A host array is not copied back. A DeviceArray does not
    make other reads wait, on other streams."""

    array: Any


@dataclass(frozen=True, eq=False)
class Out:
    """A host array that the kernel fills. The array is not copied to the device, so an element that
    the kernel does not write is undefined."""

    array: Any


@dataclass(frozen=True, eq=False)
class InOut:
    """A host array that is copied to the device and back: the default for a kernel's array."""

    array: Any


def check_writable(given: Any, array: Array) -> None:
    """Raises ValueError if the kernel may write a read-only array. `given` is the array as the
    caller passed it."""
    if array.readonly and not isinstance(given, In):
        raise ValueError("the array is read-only: pass mgpu_rt.In(array)")


# ---- copies ----


@dataclass
class Copy:
    array: Array
    to_device: bool
    to_host: bool
    device_address: int = 0

    def joins(self, other: Copy) -> bool:
        """Returns True if this copy and `other` belong to one array. Raises ValueError if the
        arrays overlap."""
        mine, theirs = self.array, other.array
        if (mine.address, mine.nbytes) == (theirs.address, theirs.nbytes):
            return True
        apart = (
            not (mine.nbytes and theirs.nbytes)
            or mine.address + mine.nbytes <= theirs.address
            or theirs.address + theirs.nbytes <= mine.address
        )
        if not apart and (self.to_host or other.to_host):
            raise ValueError("the array overlaps another array of this launch: copy one of the two")
        return False


class Copies:
    """The device copies of the host arrays that one launch or call uses. The caller calls
    `to_device` before the work, and `to_host` and `release` after the work."""

    def __init__(self, library: RuntimeLibrary, stream: Any) -> None:
        self._library, self._ffi, self._stream = library, library.ffi, stream
        self._all: list[Copy] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def of(self, given: Any, array: Array) -> Copy:
        """Returns the copy of a host array that was passed as a plain array or as In, Out or InOut.
        Several arguments that pass the same array share one copy. Raises ValueError."""
        check_writable(given, array)
        wanted = Copy(array, not isinstance(given, Out), not isinstance(given, In))
        for copy in self._all:
            if copy.joins(wanted):
                copy.to_device |= wanted.to_device
                copy.to_host |= wanted.to_host
                return copy
        self._all.append(wanted)
        return wanted

    def to_device(self) -> None:
        """Allocates device memory, and copies the arrays to it. Raises HipError."""
        for copy in self._all:
            size = copy.array.nbytes
            pointer = self._library.mgpuMemAlloc(size, self._stream, False)
            copy.device_address = int(self._ffi.cast("uintptr_t", pointer))
            if copy.to_device and size and copy.device_address:
                self._move(copy.device_address, copy.array.address, size)
        self._library.check("an argument could not be copied to the device")

    def to_host(self) -> None:
        for copy in self._all:
            if copy.to_host and copy.array.nbytes:
                self._move(copy.array.address, copy.device_address, copy.array.nbytes)

    def release(self) -> None:
        for copy in self._all:
            if copy.device_address:
                self._library.mgpuMemFree(self._pointer(copy.device_address), self._stream)
                copy.device_address = 0

    def _move(self, to: int, source: int, size: int) -> None:
        self._library.mgpuMemcpy(self._pointer(to), self._pointer(source), size, self._stream)

    def _pointer(self, address: int) -> Any:
        return self._ffi.cast("void *", address)


def wait_for(library: RuntimeLibrary, stream: Any, other: Any) -> None:
    """Makes a stream wait for the current work of another stream."""
    event = library.mgpuEventCreate()
    library.mgpuEventRecord(event, other)
    library.mgpuStreamWaitEvent(stream, event)
    library.mgpuEventDestroy(event)
