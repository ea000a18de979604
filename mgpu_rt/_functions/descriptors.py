"""Memref descriptors, with which MLIR's lowered code describes arrays."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from mgpu_rt._functions import types
from mgpu_rt._launch.arrays import Array, c_strides, is_contiguous


@functools.cache
def structure(rank: int) -> type[Any]:
    """Returns the descriptor of a memref of a given rank. Sizes and strides are in elements."""
    numbers = ctypes.c_int64 * rank

    class Descriptor(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            *((("sizes", numbers), ("strides", numbers)) if rank else ()),
        )

    return Descriptor


def describe(array: Array, kind: types.MemRefType) -> Any:
    """Returns the descriptor of an array. Raises TypeError or ValueError if the array does not have
    this type."""
    _check_element(array, kind.element)
    _check_shape(array, kind)
    strides = _strides(array, kind)
    made = structure(kind.rank)()
    # Lowered code takes the offset from the memref's type, and does not read the descriptor's
    # offset.
    offset = kind.offset or 0
    made.allocated = made.aligned = array.address - offset * array.itemsize
    made.offset = offset
    if kind.rank:
        made.sizes[:], made.strides[:] = array.shape, strides
    return made


def signless(element: str) -> tuple[str, ...]:
    """Returns the array types that fit a memref of this element type."""
    if element == "i1":
        return ("bool",)
    if element == "index":
        return ("si64", "ui64")
    return (f"s{element}", f"u{element}") if element[0] == "i" else (element,)


def _check_element(array: Array, element: str) -> None:
    if array.type in signless(element):
        return
    if not array.itemsize:
        raise TypeError("the array's owner gives neither type nor shape: pass the array by DLPack")
    raise TypeError(f"the elements are {array.type or 'of an unknown type'}")


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
    if kind.strides is None:
        if 0 not in array.shape and not is_contiguous(array.shape, array.strides, array.itemsize):
            raise ValueError(
                "the array has gaps between its elements: pass numpy.ascontiguousarray(array)"
            )
        return dense
    steps = []
    for size, step, own, wanted in zip(array.shape, array.steps, dense, kind.strides, strict=True):
        used = size > 1 and 0 not in array.shape
        if used and wanted not in (None, step):
            raise ValueError(f"the array's strides are {array.steps} elements")
        steps.append(step if used else own if wanted is None else wanted)
    return tuple(steps)
