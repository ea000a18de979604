"""Describes the arrays that callers pass, of any package: an address, and the owner of the
memory."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mgpu_rt._arrays import work
from mgpu_rt._arrays.work import Uses, Work
from mgpu_rt._packages import numpy_for
from mgpu_rt._streams import handle_of


class Element(NamedTuple):
    """A type of elements, as others name it."""

    numpy: str
    letter: str  # in array interfaces, which cannot name bfloat16
    size: int  # in bytes


#: The types of elements by their names in MLIR.
ELEMENTS = {
    "bool": Element("bool", "b", 1),
    **{f"si{8 * size}": Element(f"int{8 * size}", "i", size) for size in (1, 2, 4, 8)},
    **{f"ui{8 * size}": Element(f"uint{8 * size}", "u", size) for size in (1, 2, 4, 8)},
    **{f"f{8 * size}": Element(f"float{8 * size}", "f", size) for size in (2, 4, 8)},
    "bf16": Element("bfloat16", "", 2),
    "complex<f32>": Element("complex64", "c", 8),
    "complex<f64>": Element("complex128", "c", 16),
}
_BY_LETTER = {(e.letter, e.size): name for name, e in ELEMENTS.items()}


@dataclass(frozen=True, eq=False)
class In:
    """An array that the kernel or function only reads. The array may be read-only, and does not
    make reads on other streams wait."""

    array: Any


@dataclass(frozen=True)
class Array:
    """An array in the memory of the host or of the device."""

    address: int
    on_device: bool
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    readonly: bool = False
    stream: int | None = None  # the owner's: its work comes first; None: the owner has waited
    keep: object = None  # keeps the memory alive
    type: str = ""  # an element's type in MLIR's notation: f32, si32, ui8, bool; "": not known
    work: Work | None = None  # the pending work on this package's memory

    @property
    def is_contiguous(self) -> bool:
        """Returns True if the elements are contiguous in C's order, as those of an empty array."""
        dense = c_strides(self.shape, self.itemsize)
        return 0 in self.shape or all(
            stride == own or size <= 1
            for size, stride, own in zip(self.shape, self.strides, dense, strict=True)
        )

    @property
    def steps(self) -> tuple[int, ...]:
        """Returns the strides in elements. Raises ValueError if a stride is no whole number of
        elements."""
        steps = []
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size > 1 and stride % self.itemsize:
                raise ValueError(
                    f"the elements are {stride} bytes apart, which is not a multiple of their "
                    f"size ({self.itemsize}): copy the array, so that its elements are contiguous"
                )
            steps.append(stride // self.itemsize)
        return tuple(steps)


def array_argument(value: Any, uses: Uses) -> Array | None:
    """Returns an argument of a launch or call as an array, which is added to `uses`; None if the
    argument is no array. Raises the exceptions of `array_of`, and ValueError for a read-only array
    that may be written."""
    is_read = isinstance(value, In)
    array = array_of(value.array if is_read else value)
    if array is None:
        if is_read:
            raise TypeError(f"In takes an array, not {value.array!r}")
        return None
    if array.readonly and not is_read:
        raise ValueError("the array is read-only: pass mgpu_rt.In(array) if it is only read")
    uses.add(array.work, writes=not is_read)
    uses.follow(array.stream)
    work.keep_in_graph(array)
    return array


def refusal(argument: str, error: Exception) -> Exception:
    """Returns a new error, whose message also names the argument."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{argument}: {error}")


def array_of(value: Any) -> Array | None:
    """Returns the value as an array; None if the value is no array.

    Raises TypeError or ValueError for arrays that no kernel can use, ImportError without NumPy.
    """
    if callable(own := getattr(type(value), "_as_argument", None)):  # this package's
        return own(value)
    # PyTorch's host tensors have the attribute __cuda_array_interface__, but a read of this
    # attribute raises AttributeError.
    if (interface := getattr(value, "__cuda_array_interface__", None)) is not None:
        found: Array | None = _by_interface(value, interface)
    else:
        found = _on_host(value)
    if found is not None and found.on_device:
        return replace(found, work=work.of_shared(found.address))
    return found


def c_strides(shape: tuple[int, ...], itemsize: int = 1) -> tuple[int, ...]:
    """Returns the strides of contiguous elements in C's order."""
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))


def _element(value: Any, dtype: Any) -> str:
    """Returns an element's type in MLIR's notation, or NumPy's for a type that MLIR lacks. The
    interfaces describe bfloat16 as untyped bytes; only the array's dtype names bfloat16. Raises
    TypeError for types that no kernel can use."""
    if getattr(getattr(value, "dtype", None), "name", None) == "bfloat16":
        return "bf16"
    if dtype.hasobject or not dtype.itemsize:
        raise TypeError(f"elements of the type '{dtype}' are no argument: give numbers")
    if not dtype.isnative:
        raise TypeError(
            f"the elements are big-endian ('{dtype.str}'): convert the array, by "
            "array.astype(array.dtype.newbyteorder('='))"
        )
    return _BY_LETTER.get((dtype.kind, dtype.itemsize), dtype.str)


def _refuse_mask(value: Any, is_masked: bool) -> None:
    """Raises TypeError for an array with a mask."""
    if is_masked:
        raise TypeError(
            f"a {type(value).__name__} has a mask, which no kernel sees: pass the array's data, or "
            "array.filled(value)"
        )


def _on_host(value: Any) -> Array | None:
    """Returns an array of NumPy, or an object that supports the buffer protocol."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        _refuse_mask(value, isinstance(value, numpy.ma.MaskedArray))
        array = numpy.asarray(value)
    else:
        try:
            view = memoryview(value)
        except TypeError:
            return None
        try:
            array = numpy_for("an array as an argument").asarray(view)
        except (RuntimeError, TypeError, ValueError) as error:
            raise TypeError(f"a {type(value).__name__} cannot be an argument: {error}") from None
    return Array(
        array.ctypes.data,
        False,
        array.itemsize,
        array.shape,
        array.strides,
        not array.flags.writeable,
        keep=(value, array),
        type=_element(value, array.dtype),
    )


# ---- on the device ----

_LEGACY = 1  # the interface's number of the null stream


def _by_interface(value: Any, interface: dict[str, Any]) -> Array:
    _refuse_mask(value, interface.get("mask") is not None)
    numpy, named = numpy_for("an array as an argument"), interface["typestr"]
    # NumPy's names, such as float32, are hip-python's names, too.
    dtype = numpy.dtype(interface.get("descr") or named if named[1:2] == "V" else named)
    shape, itemsize = tuple(interface["shape"]), dtype.itemsize
    stream, (address, readonly) = interface.get("stream"), interface["data"]
    return Array(
        address or 0,
        True,
        itemsize,
        shape,
        tuple(interface.get("strides") or c_strides(shape, itemsize)),
        readonly=bool(readonly),
        stream=None if stream is None else 0 if stream == _LEGACY else handle_of(stream),
        type=_element(value, dtype),
    )
