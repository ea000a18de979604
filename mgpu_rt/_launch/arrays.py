"""Describes arrays for kernels: an address, and the object that owns the memory."""

from __future__ import annotations

import ctypes
import math
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cffi import FFI

from mgpu_rt._arrays import work
from mgpu_rt._arrays.work import Work

_ffi = FFI()


@dataclass(frozen=True)
class Array:
    """An array in memory: contiguous on the host, with any strides on the device."""

    address: int
    on_device: bool
    itemsize: int = 0  # 0: not known, nor shape and strides
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # in bytes
    readonly: bool = False
    stream: int | None = None  # the owner's: its work comes first; None: the owner has waited
    keep: object = None  # keeps the memory alive
    type: str = ""  # an element's type in MLIR's notation: f32, si32, ui8, bool; "": not known
    work: Work | None = None  # the pending work on this package's memory

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

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


def array_of(value: Any, stream: int, *, gaps: bool = False) -> Array | None:
    """Returns the value as an array; None if the value is no array. `stream` is the stream on which
    the array is used. With `gaps` an array on the host may have gaps between its elements.

    Raises TypeError or ValueError for arrays that no kernel can use.
    """
    if callable(own := getattr(type(value), "_as_argument", None)):  # this package's
        return own(value)
    found = _foreign(value, stream, gaps=gaps)
    if found is None or not found.on_device:
        return found
    return replace(found, work=work.of_shared(found.address))


def _foreign(value: Any, stream: int, *, gaps: bool) -> Array | None:
    """Returns an array of another package."""
    # PyTorch's host tensors have the attribute __cuda_array_interface__, but a read of this
    # attribute raises AttributeError.
    if (interface := getattr(value, "__cuda_array_interface__", None)) is not None:
        return _by_interface(value, interface)
    if (host := _host(value, gaps=gaps)) is not None:
        return host
    if hasattr(value, "__dlpack_device__"):
        return _by_dlpack(value, stream, gaps=gaps)
    if callable(address := getattr(value, "data_ptr", None)):
        return Array(address(), on_device=True)
    if callable(pointer := getattr(value, "as_c_void_p", None)):  # hip-python's
        return Array(pointer().value or 0, on_device=True, keep=value)
    return None


def _strides(given: Any, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Returns an array's strides in bytes. `given` is None for an array in C's order."""
    if given is not None:
        return tuple(given)
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))


_TYPE = re.compile(r"[<>|=]?([a-zA-Z])(\d*)")
#: hip-python's device arrays name a type by NumPy's name, such as float32, or by a letter, such as
#: B for bytes.
_NAME = re.compile(r"(?:u?int|float|complex)(\d{1,3})")
_CHARACTERS = frozenset("?bBhHiIlLqQefd")
_LETTER = 4  # bytes of a letter, in which text types count


def _itemsize(interface: dict[str, Any]) -> int:
    """Returns the size of an element in bytes. Raises TypeError for types that no kernel can
    use."""
    if match := _NAME.fullmatch(interface["typestr"]):
        return int(match[1]) // 8
    if interface["typestr"] in _CHARACTERS:
        return struct.calcsize(interface["typestr"])
    match, fields = _TYPE.match(interface["typestr"]), interface.get("descr")
    if match and (match[1] == "O" or _any_field(fields, lambda kind: kind[1:2] == "O")):
        raise _objects()
    if _is_big_endian(interface["typestr"]) or _any_field(fields, _is_big_endian):
        raise _big_endian(interface["typestr"])
    if not match or not match[2] or match[1] == "t":
        raise TypeError(f"elements of the type '{interface['typestr']}' are no argument")
    return int(match[2]) * (_LETTER if match[1] == "U" else 1)


_KINDS = {"b": "bool", "i": "si", "u": "ui", "f": "f", "c": "complex<f"}


def _element(value: Any, typestr: str, itemsize: int) -> str:
    """Returns an element's type in MLIR's notation, or `typestr` for a type that MLIR lacks.
    NumPy's interface describes bfloat16 as untyped bytes; only the array's dtype names bfloat16."""
    if getattr(getattr(value, "dtype", None), "name", None) == "bfloat16":
        return "bf16"
    match = _TYPE.fullmatch(typestr)
    if not match or match[1] not in _KINDS:
        return typestr
    return _in_bits(_KINDS[match[1]], itemsize * 8)


def _in_bits(kind: str, bits: int) -> str:
    if kind == "complex<f":
        return f"complex<f{bits // 2}>"
    return kind if kind == "bool" else f"{kind}{bits}"


def _any_field(fields: Any, is_of_kind: Callable[[str], bool]) -> bool:
    """Returns True if a record has a field of a kind, at any depth."""
    if isinstance(fields, str):
        return is_of_kind(fields)
    return any(_any_field(field[1], is_of_kind) for field in fields or ())


def _is_big_endian(typestr: str) -> bool:
    """Returns True if the elements of a type of NumPy's have several bytes, the highest first."""
    return typestr[:1] == ">" and typestr[1:2] not in ("", "S", "V") and typestr[2:] != "1"


def _big_endian(kind: str) -> TypeError:
    return TypeError(
        f"the elements are big-endian ('{kind}'): convert the array, by "
        "array.astype(array.dtype.newbyteorder('='))"
    )


def _objects() -> TypeError:
    return TypeError("an array of Python objects cannot be an argument: give it a type of numbers")


def _refuse_mask(value: Any, interface: dict[str, Any]) -> None:
    """Raises TypeError for an array with a mask. NumPy's masked arrays have a mask that the
    interface does not name."""
    numpy = sys.modules.get("numpy.ma")
    if interface.get("mask") is not None or (numpy and isinstance(value, numpy.MaskedArray)):
        raise TypeError(
            f"a {type(value).__name__} has a mask, which no kernel sees: pass the array's data, or "
            "array.filled(value)"
        )


# ---- on the device ----

_LEGACY = 1  # the interface's number of the null stream


def _by_interface(value: Any, interface: dict[str, Any]) -> Array:
    _refuse_mask(value, interface)
    shape, itemsize = tuple(interface["shape"]), _itemsize(interface)
    stream = interface.get("stream")
    if stream == 0:
        raise ValueError(
            f"a {type(value).__name__} names stream 0, which __cuda_array_interface__ forbids: the "
            "array has to name the null stream as 1, and None if no work is pending"
        )
    address, readonly = interface["data"]
    return Array(
        address or 0,
        True,
        itemsize,
        shape,
        _strides(interface.get("strides"), shape, itemsize),
        readonly=bool(readonly),
        stream=0 if stream == _LEGACY else stream,
        type=_element(value, interface["typestr"], itemsize),
    )


_DLPACK_CPU, _DLPACK_CUDA = 1, 2
_ON_DEVICE = {
    _DLPACK_CUDA: "CUDA",
    3: "CUDA's pinned memory",
    10: "ROCm",
    11: "ROCm's pinned memory",
    13: "managed memory",
}


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


#: For each type code of DLPack, the prefix of the type's name in MLIR.
_DLPACK_KINDS = {0: "si", 1: "ui", 2: "f", 4: "bf", 5: "complex<f", 6: "bool"}


def _by_dlpack(value: Any, stream: int, *, gaps: bool) -> Array:
    device = value.__dlpack_device__()[0]
    on_host = device == _DLPACK_CPU
    if not on_host and device not in _ON_DEVICE:
        raise TypeError(
            f"a {type(value).__name__} on DLPack's device {device} cannot be an argument: move it "
            "to the GPU, or to the host"
        )
    if on_host:
        capsule = value.__dlpack__(stream=None)
    else:
        # __dlpack__ makes `stream` wait for the stream on which the array's owner works. DLPack's
        # number for the null stream is 1 with CUDA and 0 with ROCm.
        null = _LEGACY if device == _DLPACK_CUDA else 0
        capsule = value.__dlpack__(stream=stream or null)
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    shape, itemsize = tuple(tensor.shape[: tensor.ndim]), tensor.bits * tensor.lanes // 8
    steps = tensor.strides[: tensor.ndim] if tensor.strides else None
    kind = _DLPACK_KINDS.get(tensor.code, "") if tensor.lanes == 1 else ""
    array = Array(
        (tensor.data or 0) + tensor.byte_offset,
        not on_host,
        itemsize,
        shape,
        _strides(steps and [step * itemsize for step in steps], shape, itemsize),
        keep=capsule,  # the capsule's end releases the tensor, as no other owner has taken it
        type=kind and _in_bits(kind, tensor.bits),
    )
    if on_host and not gaps and not _is_dense(shape, array.strides, itemsize):
        raise _gaps(value)
    return array


# ---- on the host ----


def _host(value: Any, *, gaps: bool) -> Array | None:
    if (interface := getattr(value, "__array_interface__", None)) is not None:
        return _by_array_interface(value, interface, gaps=gaps)
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if "O" in _FIELD_NAME.sub("", view.format):
        raise _objects()
    if view.format[:1] in (">", "!") and view.itemsize > 1:
        raise _big_endian(view.format)
    if not view.c_contiguous:
        raise _gaps(value)
    element = _LETTERS.get(view.format.lstrip("@"), "")
    return Array(
        _address(view),
        False,
        view.itemsize,
        view.shape,
        view.strides,
        view.readonly,
        keep=view,
        type=_in_bits(element, view.itemsize * 8) if element else view.format,
    )


#: The kind of type for each letter in a buffer's format.
_LETTERS = {
    **dict.fromkeys("bhilqn", "si"),
    **dict.fromkeys("BHILQN", "ui"),
    **dict.fromkeys("efd", "f"),
    "?": "bool",
}
_FIELD_NAME = re.compile(":[^:]*:")  # in a buffer's format


def _address(view: memoryview) -> int:
    return int(_ffi.cast("uintptr_t", _ffi.from_buffer(view)))


def _by_array_interface(value: Any, interface: dict[str, Any], *, gaps: bool) -> Array:
    """Reads NumPy's array interface. Arrays that do not support the buffer protocol, such as arrays
    of bfloat16, also have NumPy's array interface. Packages other than NumPy may omit entries that
    have defaults. PIL's interface omits the strides, and contains bytes instead of an address."""
    _refuse_mask(value, interface)
    shape, itemsize = tuple(interface["shape"]), _itemsize(interface)
    strides = _strides(interface.get("strides"), shape, itemsize)
    if not gaps and not _is_dense(shape, strides, itemsize):
        raise _gaps(value)
    element = _element(value, interface["typestr"], itemsize)
    data = interface.get("data")
    if isinstance(data, tuple):
        address, readonly = data
        return Array(address, False, itemsize, shape, strides, readonly, keep=value, type=element)
    view = memoryview(value if data is None else data).cast("B")
    offset = interface.get("offset", 0)
    array = Array(
        _address(view) + offset,
        False,
        itemsize,
        shape,
        strides,
        view.readonly,
        keep=view,
        type=element,
    )
    if not 0 <= offset <= view.nbytes - array.nbytes:
        raise ValueError(
            f"a {type(value).__name__} claims {array.nbytes:,} bytes from offset {offset:,}, but "
            f"its buffer has {view.nbytes:,}"
        )
    return array


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Returns True if the elements are contiguous, in any order."""
    expected = itemsize
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _gaps(value: Any) -> ValueError:
    return ValueError(
        f"a {type(value).__name__} with gaps between its elements cannot be an argument: pass "
        "numpy.ascontiguousarray of it"
    )
