"""Converts numbers to and from the form in which lowered functions pass them.

A value is a ctypes object with the bits that the function reads. ctypes passes a value object
unchanged. A result is an object of one of this module's classes, with the returned bits.
"""

from __future__ import annotations

import ctypes
import math
import operator
import struct
from typing import Any

from mgpu_rt._functions.types import Scalar

# ctypes converts results of its own classes to Python's numbers; results of subclasses stay
# objects.


_SIGNED = {
    size: type(f"_Integer{size}", (kind,), {})
    for size, kind in (
        (1, ctypes.c_int8),
        (2, ctypes.c_int16),
        (4, ctypes.c_int32),
        (8, ctypes.c_int64),
    )
}


class _Half(ctypes.c_float):
    """A register with a 16-bit float in the lower half."""


class _HalfField(ctypes.c_uint16):
    pass


class _Boolean(ctypes.c_uint8):
    """A register in which only the lowest bit is valid."""


_REGISTERS = {
    "f16": _Half,
    "bf16": _Half,
    "f32": type("_Single", (ctypes.c_float,), {}),
    "f64": type("_Double", (ctypes.c_double,), {}),
    "i1": _Boolean,
}


def register_type(kind: Scalar) -> type:
    """Returns the ctypes class in which a single value is passed and returned."""
    return _REGISTERS.get(kind.text) or _SIGNED[kind.size]


def field_type(kind: Scalar) -> type:
    """Returns the ctypes class of a value in a structure of results."""
    return _HalfField if kind.size == 2 and kind.is_float else register_type(kind)


def encode(value: Any, kind: Scalar) -> Any:
    """Returns a number in the form that the function takes. Raises TypeError or ValueError."""
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if getattr(value, "shape", ()) != () or isinstance(value, (str, bytes)):
        raise TypeError(f"a {type(value).__name__} is not a number")
    content = _float(value, kind) if kind.is_float else _integer(value, kind)
    register = register_type(kind)
    return register.from_buffer_copy(content.ljust(ctypes.sizeof(register), b"\0"))


def _integer(value: Any, kind: Scalar) -> bytes:
    is_truth = type(value).__name__ in ("bool", "bool_")  # NumPy's bool is no index
    try:
        number = int(bool(value)) if is_truth else operator.index(value)
    except TypeError:
        raise TypeError(f"a {type(value).__name__} is not an integer") from None
    bits = 1 if kind.text == "i1" else 8 * kind.size
    lowest = 0 if kind.text.startswith("u") or bits == 1 else -(1 << (bits - 1))
    highest = (1 << (bits - 1 if kind.text.startswith("s") else bits)) - 1
    if not lowest <= number <= highest:
        raise ValueError(f"{number} does not fit: the parameter takes {lowest} to {highest}")
    return (number & ((1 << 8 * kind.size) - 1)).to_bytes(kind.size, "little")


def _float(value: Any, kind: Scalar) -> bytes:
    try:
        number = float(value)
        if kind.text == "bf16":
            return _bfloat16(number)
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[kind.size], number)
    except (TypeError, ValueError):
        raise TypeError(f"a {type(value).__name__} is not a number") from None
    except OverflowError:
        raise ValueError(f"{value} does not fit in an {kind.text}") from None


def _bfloat16(number: float) -> bytes:
    """Rounds a number once, to the nearest bfloat16; rounds a halfway case to even. Raises
    OverflowError."""
    if math.isfinite(number):
        _, exponent = math.frexp(number)
        step = math.ldexp(1, max(exponent - 8, -133))
        number = math.copysign(round(number / step) * step, number)
    return struct.pack("<f", number)[2:]


def decode(content: bytes, kind: Scalar) -> bool | int | float:
    content = content[: kind.size]
    if kind.text == "i1":
        return bool(content[0] & 1)
    if kind.text == "bf16":
        return struct.unpack("<f", b"\0\0" + content)[0]
    if kind.is_float:
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[kind.size], content)[0]
    return int.from_bytes(content, "little", signed=not kind.text.startswith("u"))
