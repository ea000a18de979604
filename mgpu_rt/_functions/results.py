"""Converts results of lowered functions to Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from mgpu_rt._arrays.arrays import DeviceArray, numpy_type
from mgpu_rt._arrays.memory import Memory
from mgpu_rt._arrays.work import Uses, Work
from mgpu_rt._functions import descriptors, types, values
from mgpu_rt._packages import numpy_for
from mgpu_rt.runtime._hip import Hip

#: For a memref that is a constant of the program, MLIR writes this value into the descriptor's
#: `allocated` pointer.
_CONSTANT = 0xDEADBEEF


def structure(kinds: Iterable[types.Type]) -> type[Any]:
    """Returns the structure of a function's results; a single number needs no structure."""

    def field(kind: Any) -> type:
        is_array = isinstance(kind, types.MemRefType)
        return descriptors.descriptor(kind.rank) if is_array else values.register_type(kind)

    class Results(ctypes.Structure):
        _fields_ = tuple((f"r{number}", field(kind)) for number, kind in enumerate(kinds))

    return Results


class Reader:
    """Reads the results of one call. The function passes its allocations to the caller. Each
    allocation gets one owner, even if several results are in the allocation."""

    def __init__(self, library: object, given: dict[int, object], uses: Uses) -> None:
        """`library` owns the constants that may be results. `given` maps addresses to the owners of
        the arguments' memory. The reader adds the allocations of the results to `uses`, because
        work that fills results may still be pending."""
        self._library = library
        self._owners: dict[int, Any] = dict(given)
        self._uses = uses

    def read(self, kind: types.Type, content: Any) -> Any:
        if isinstance(kind, types.Scalar):
            return values.decode(content, kind)
        assert isinstance(kind, types.MemRefType)
        return self._array(kind, content)

    def _array(self, kind: types.MemRefType, found: Any) -> Any:
        element, size = descriptors.signless(kind.element)[0], types.SIZES[kind.element]
        allocated, aligned, offset, *rest = found
        shape, steps = tuple(rest[: kind.rank]), rest[kind.rank :]
        address = aligned + offset * size
        strides = tuple(step * size for step in steps)
        if allocated == _CONSTANT:
            return _numpy(self._library, address, element, shape, strides).copy()
        owner = self._owner(allocated, address)
        if isinstance(owner, Memory):
            device, work = owner.device, owner.work
        else:  # an argument's memory
            _value, array = owner
            device, work = _device_of(address), array.work or Work()
        if device is None:
            return _numpy(owner, address, element, shape, strides)
        self._uses.add(work, writes=True)
        return DeviceArray(owner, address, element, shape, strides, device=device, work=work)

    def _owner(self, allocated: int, address: int) -> Any:
        if allocated not in self._owners:
            self._owners[allocated] = Memory(allocated, _device_of(allocated or address))
        return self._owners[allocated]


class _HostMemory:
    """The memory of a result as NumPy reads it. NumPy's array keeps this object and its owner."""

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self._owner, self.__array_interface__ = owner, interface


def _numpy(
    owner: object, address: int, kind: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Any:
    """Returns a NumPy array of a result in host memory. Raises ImportError without NumPy, or for
    bfloat16 without ml_dtypes."""
    numpy, type_ = numpy_for("an array as a result"), numpy_type(kind)
    bits = f"u{type_.itemsize}" if kind == "bf16" else type_.str
    memory = {"data": (address, False), "typestr": bits, "shape": shape, "strides": strides}
    return numpy.asarray(_HostMemory(owner, {"version": 3, **memory})).view(type_)


def _device_of(address: int) -> int | None:
    hip = Hip.in_use() if address else None
    return hip.device_of(address) if hip else None
