"""Converts results of lowered functions to Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from mgpu_rt._arrays.arrays import DeviceArray, HostArray
from mgpu_rt._arrays.memory import Memory
from mgpu_rt._arrays.work import Uses, Work
from mgpu_rt._functions import descriptors, types, values
from mgpu_rt._launch.copies import Copy
from mgpu_rt._packages import numpy_for
from mgpu_rt.runtime._hip import Hip

#: For a memref that is a constant of the program, MLIR writes this value into the descriptor's
#: `allocated` pointer.
_CONSTANT = 0xDEADBEEF


def field(kind: types.Type) -> type:
    """Returns the ctypes class of a result that is a member of a structure."""
    if isinstance(kind, types.MemRefType):
        return descriptors.structure(kind.rank)
    if isinstance(kind, types.Unranked):
        return descriptors.Unranked
    assert isinstance(kind, types.Scalar)
    return values.field_type(kind)


def structure(kinds: Iterable[types.Type]) -> type[Any]:
    """Returns the structure of a function's results; a single number needs no structure."""

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
        self._owners: dict[int, object] = dict(given)
        self._uses = uses

    def read(self, kind: types.Type, content: Any) -> Any:
        if isinstance(kind, types.Scalar):
            return values.decode(bytes(content), kind)
        if isinstance(kind, types.Unranked):
            ranked = descriptors.structure(content.rank)
            inner = ranked.from_buffer_copy(
                ctypes.string_at(content.descriptor, ctypes.sizeof(ranked))
            )
            Memory(content.descriptor, on_device=False)  # freed at once, as the caller owns it
            return self._array(kind.element, content.rank, inner)
        assert isinstance(kind, types.MemRefType)
        return self._array(kind.element, kind.rank, content)

    def _array(self, element: str, rank: int, found: Any) -> Any:
        kind = descriptors.signless(element)[0]
        size = types.SIZES[element]
        shape, steps = (tuple(found.sizes), tuple(found.strides)) if rank else ((), ())
        address = (found.aligned or 0) + found.offset * size
        strides = tuple(step * size for step in steps)
        if found.allocated == _CONSTANT:
            return _numpy(HostArray(self._library, address, kind, shape, strides), copy=True)
        owner = self._owner(found.allocated or 0, address)
        if isinstance(owner, Copy):
            raise ValueError(
                "the result lies in the copy of an argument that was passed as In, Out or "
                "InOut, and the copy ends with the call: pass mgpu_rt.to_device(array) instead"
            )
        if isinstance(owner, Memory):
            on_device, work = owner.device if owner.on_device else None, owner.work
        else:  # an argument's memory
            _value, array = owner
            on_device, work = _device_of(address), array.work or Work()
        if on_device is None:
            return _numpy(HostArray(owner, address, kind, shape, strides))
        self._uses.add(work, writes=True)
        return DeviceArray(owner, address, kind, shape, strides, device=on_device, work=work)

    def _owner(self, allocated: int, address: int) -> object:
        if allocated not in self._owners:
            device = _device_of(allocated or address)
            self._owners[allocated] = Memory(
                allocated, on_device=device is not None, device=device or 0
            )
        return self._owners[allocated]


def _numpy(array: HostArray, *, copy: bool = False) -> Any:
    """Returns a NumPy array that keeps the memory alive, or the array itself if no package has the
    element type."""
    numpy = numpy_for("an array as a result")
    if array.dtype == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            return array
        plain = HostArray(array._owner, array._address, "ui16", array.shape, array.strides)
        made = numpy.asarray(plain).view(ml_dtypes.bfloat16)
    else:
        made = numpy.asarray(array)
    return made.copy() if copy else made


def _device_of(address: int) -> int | None:
    hip = Hip.in_use() if address else None
    return hip.device_of(address) if hip else None
