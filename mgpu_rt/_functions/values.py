"""Converts numbers to and from the objects of ctypes in which lowered functions pass them."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import Any

from mgpu_rt._functions.types import Scalar
from mgpu_rt._numbers import pack


# ctypes converts results of its own classes to Python's numbers; results of subclasses stay
# objects.
class _Half(ctypes.c_float):
    """A register with a 16-bit float in the lower half."""


class _HalfField(ctypes.c_uint16):
    """A 16-bit float in a structure."""


_REGISTERS: dict[str, type[Any]] = {
    "f16": _Half,
    "bf16": _Half,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i1": ctypes.c_uint8,  # only the lowest bit is valid
}
_INTEGERS = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}


def register_type(kind: Scalar) -> type[Any]:
    """Returns the ctypes class in which a single value is passed and returned."""
    return _REGISTERS.get(kind.text) or _INTEGERS[kind.size]


def field_type(kind: Scalar) -> type[Any]:
    """Returns the ctypes class of a value in a structure of results."""
    return _HalfField if kind.size == 2 and kind.is_float else register_type(kind)


def encode(value: Any, kind: Scalar) -> Any:
    """Returns a number in the form that the function takes. Raises TypeError or ValueError."""
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if getattr(value, "shape", ()) != () or isinstance(value, (str, bytes)):
        raise TypeError(f"a {type(value).__name__} is not a number")
    if kind.text == "i1" and value not in (0, 1):
        raise ValueError(f"{value} does not fit: the parameter takes 0 or 1")
    if type(value).__name__ in ("bool", "bool_"):  # NumPy's bool is no index
        value = int(value)
    sign = kind.text[0] if kind.text[0] in "su" else ""
    if kind.text == "bf16":
        content = _bfloat16(value)
    else:
        content = pack(value, kind.size, is_float=kind.is_float, sign=sign)
    register = register_type(kind)
    return register.from_buffer_copy(content.ljust(ctypes.sizeof(register), b"\0"))


def _bfloat16(value: Any) -> bytes:
    """Rounds a number once, to the nearest bfloat16; rounds a halfway case to even."""
    (number,) = struct.unpack("<d", pack(value, 8, is_float=True))
    if math.isfinite(number):
        _, exponent = math.frexp(number)
        step = math.ldexp(1, max(exponent - 8, -133))
        number = math.copysign(round(number / step) * step, number)
    return pack(number, 4, is_float=True)[2:]


def decode(content: Any, kind: Scalar) -> bool | int | float:
    """Returns a value that a function has returned, as ctypes gives it."""
    if kind.text == "i1":
        return bool(content & 1)
    if kind.text == "f16":
        return struct.unpack("<e", bytes(content)[:2])[0]
    if kind.text == "bf16":
        return struct.unpack("<f", b"\0\0" + bytes(content)[:2])[0]
    return content % (1 << 8 * kind.size) if kind.text.startswith("u") else content
