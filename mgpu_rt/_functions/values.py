"""Converts numbers to and from the objects of ctypes in which lowered functions pass them."""

from __future__ import annotations

import ctypes
from typing import Any

from mgpu_rt._functions.types import Scalar
from mgpu_rt._numbers import pack

_REGISTERS: dict[str, type[Any]] = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i1": ctypes.c_uint8,  # only the lowest bit is valid
}
_INTEGERS = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}


def register_type(kind: Scalar) -> type[Any]:
    """Returns the ctypes class in which a value is passed and returned."""
    return _REGISTERS.get(kind.text) or _INTEGERS[kind.size]


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
    content = pack(value, kind.size, is_float=kind.is_float, sign=sign)
    return register_type(kind).from_buffer_copy(content)


def decode(content: Any, kind: Scalar) -> bool | int | float:
    """Returns a value that a function has returned, as ctypes gives it."""
    if kind.text == "i1":
        return bool(content & 1)
    return content % (1 << 8 * kind.size) if kind.text.startswith("u") else content
