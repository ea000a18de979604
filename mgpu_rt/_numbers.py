"""Converts Python's numbers to the bytes that kernels and lowered functions take, and blocks of
memory to numbers."""

from __future__ import annotations

import operator
import struct
from typing import Any

from mgpu_rt._packages import numpy_for

#: Maps each type name of MLIR to a type name of NumPy. NumPy lacks bf16, which is the upper half of
#: an f32.
DTYPES = {
    **{"f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8"},
    **{"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"},
}
FLOATS = ("f16", "bf16", "f32", "f64")

_FORMS = {2: "<e", 4: "<f", 8: "<d"}


def pack(value: Any, size: int, *, is_float: bool, sign: str = "") -> bytes:
    """Returns the `size` bytes of a number. An integer may be signed or unsigned, unless `sign` is
    "s" or "u". Raises TypeError, or ValueError if the number does not fit."""
    if size not in ((2, 4, 8) if is_float else (1, 2, 4, 8)):
        kind = "a float" if is_float else "an int"
        raise TypeError(f"{value} is {kind}; the parameter has {size} bytes: pass bytes")
    try:
        if is_float:
            return struct.pack(_FORMS[size], float(value))
        number = operator.index(value)
        return number.to_bytes(size, "little", signed=sign == "s" or (not sign and number < 0))
    except OverflowError:
        raise ValueError(f"{value} does not fit in the parameter's {size} bytes") from None


def numbers(content: bytes, dtype: str) -> Any:
    """Returns the elements of a block, as a NumPy array."""
    found = numpy_for("--tolerance").frombuffer(content, DTYPES[dtype])
    return (found.astype("u4") << 16).view("f4") if dtype == "bf16" else found
