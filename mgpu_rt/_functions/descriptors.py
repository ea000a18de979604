"""Memref descriptors, with which MLIR's lowered code describes arrays: the address twice, the
offset, the sizes and the strides in elements. Each is a number of 64 bits."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from mgpu_rt._arrays.given import Array, c_strides
from mgpu_rt._functions import types


def descriptor(rank: int) -> type[Any]:
    """Returns the ctypes class of descriptors of a rank."""
    return ctypes.c_int64 * (3 + 2 * rank)


def describe(array: Array, kind: types.MemRefType) -> Any:
    """Returns the descriptor of an array. Raises TypeError or ValueError if the array does not have
    this type."""
    if array.type not in signless(kind.element):
        raise TypeError(f"the elements are {array.type or 'of an unknown type'}")
    _check_shape(array, kind)
    # Lowered code takes the offset from the memref's type, and does not read the descriptor's
    # offset.
    offset = kind.offset or 0
    base = array.address - offset * array.itemsize
    numbers = (base, base, offset, *array.shape, *_strides(array, kind))
    try:
        content = struct.pack(f"<{len(numbers)}q", *numbers)
    except struct.error as error:
        raise ValueError(f"no memory has such an array: {error}") from None
    return descriptor(kind.rank).from_buffer_copy(content)


def signless(element: str) -> tuple[str, ...]:
    """Returns the array types that fit a memref of this element type."""
    if element == "i1":
        return ("bool",)
    if element == "index":
        return ("si64", "ui64")
    return (f"s{element}", f"u{element}") if element[0] == "i" else (element,)


def _check_shape(array: Array, kind: types.MemRefType) -> None:
    if len(array.shape) != kind.rank or any(
        wanted not in (None, size) for wanted, size in zip(kind.shape, array.shape, strict=True)
    ):
        raise ValueError(f"the array's shape is {array.shape}")
    # An element of 16 bytes is a complex number, and has the alignment of an 8-byte float.
    if array.address % min(array.itemsize, 8) and 0 not in array.shape:
        raise ValueError(
            f"the elements are not aligned to {min(array.itemsize, 8)} bytes: copy the array"
        )


def _strides(array: Array, kind: types.MemRefType) -> tuple[int, ...]:
    """Returns the strides in elements. A dimension of size 0 or 1 gets MLIR's stride, which no code
    uses."""
    dense = c_strides(array.shape)
    found = []
    for size, step, own, wanted in zip(
        array.shape, array.steps, dense, kind.strides or dense, strict=True
    ):
        is_used = size > 1 and 0 not in array.shape
        if is_used and wanted not in (None, step):
            raise ValueError(
                f"the array's strides are {array.steps} elements"
                if kind.strides
                else "the array has gaps between its elements: pass numpy.ascontiguousarray(array)"
            )
        found.append(step if is_used else own if wanted is None else wanted)
    return tuple(found)
