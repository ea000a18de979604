"""Implements gfx942's 8-bit floats (FNUZ) from their definition, independently of the emulator."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

#: Number of mantissa bits, and the exponent's bias.
FP8, BF8 = (3, 8), (2, 16)
NAN = 0x80


def decode(kind: tuple[int, int], code: int) -> float:
    mantissa, bias = kind
    if code == NAN:
        return math.nan
    exponent, rest = (code & 0x7F) >> mantissa, code & ((1 << mantissa) - 1)
    units = rest + (1 << mantissa) if exponent else rest
    value = math.ldexp(units, max(exponent, 1) - bias - mantissa)
    return -value if code & 0x80 else value


@functools.cache
def _numbers(kind: tuple[int, int]) -> list[Fraction]:
    """Returns the numbers of the positive codes, and the number that would follow the largest: a
    value nearest to that one overflows."""
    codes = [Fraction(decode(kind, code)) for code in range(128)]
    return [*codes, 2 * codes[127] - codes[126]]


@functools.cache
def encode(kind: tuple[int, int], value: float) -> int:
    """Returns the code nearest to a value, or the even code if two codes are equally near. Numbers
    too large for any code become NaN."""
    if not math.isfinite(value):
        return NAN
    size = Fraction(abs(value))
    codes = _numbers(kind)
    best = min(range(129), key=lambda code: (abs(codes[code] - size), code % 2))
    if best == 128:
        return NAN
    return best | 0x80 if best and math.copysign(1, value) < 0 else best
