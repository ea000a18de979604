"""Converts Python's numbers to the bytes that kernels and lowered functions take."""

from __future__ import annotations

import operator
import struct
from typing import Any

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def pack(value: Any, size: int, *, is_float: bool, sign: str = "") -> bytes:
    """Returns the `size` bytes of a number. An integer may be signed or unsigned, unless `sign` is
    "s" or "u". Raises TypeError, or ValueError if the number does not fit."""
    if size not in ((2, 4, 8) if is_float else (1, 2, 4, 8)):
        kind = "a float" if is_float else "an int"
        raise TypeError(f"{value} is {kind}; the parameter has {size} bytes: pass bytes")
    try:
        if is_float:
            return struct.pack(_FLOATS[size], float(value))
        number = operator.index(value)
        return number.to_bytes(size, "little", signed=sign == "s" or (not sign and number < 0))
    except OverflowError:
        raise ValueError(f"{value} does not fit in the parameter's {size} bytes") from None
