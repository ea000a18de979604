"""Checks of numbers in files that anybody may have written."""

from __future__ import annotations

import math
from typing import Any


def count(value: Any) -> int:
    """A number of calls or bytes. Raises ValueError."""
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError
    return value


def time(value: Any) -> float:
    """A time. Raises ValueError, TypeError or OverflowError."""
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError
    return number
