"""Computes the results of single instructions in exact arithmetic, independently of the
interpreter. The results follow AMD's ISA documents. Float results are computed as fractions and
rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

FORMATS = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}


class Signalling(float):
    """A signalling NaN."""


NAN = float("nan")


def bits_of_type(kind: str) -> int:
    return int(kind[1:])


def decode(kind: str, raw: int) -> int | float:
    """Decodes a register's bits as a value of a type such as i32, u16, b64 or f32."""
    width = bits_of_type(kind)
    raw &= (1 << width) - 1
    if kind[0] in "ub":
        return raw
    if kind[0] == "i":
        return raw - (1 << width) if raw >> (width - 1) else raw
    ebits, mbits = FORMATS[kind]
    sign, exponent = raw >> (width - 1), raw >> mbits & ((1 << ebits) - 1)
    mantissa, bias = raw & ((1 << mbits) - 1), (1 << (ebits - 1)) - 1
    if exponent == (1 << ebits) - 1:
        if mantissa:
            return NAN if mantissa >> (mbits - 1) else Signalling("nan")
        return -math.inf if sign else math.inf
    value = (
        math.ldexp(mantissa, 1 - bias - mbits)
        if exponent == 0
        else math.ldexp(mantissa | 1 << mbits, exponent - bias - mbits)
    )
    return -value if sign else value


def encode(kind: str, value: int | float | Fraction) -> int:
    """Returns the bits of the float nearest to a value, or of the even float if two floats are
    equally near. Integers wrap."""
    width = bits_of_type(kind)
    if kind[0] != "f":
        return int(value) & ((1 << width) - 1)
    ebits, mbits = FORMATS[kind]
    bias, inf = (1 << (ebits - 1)) - 1, ((1 << ebits) - 1) << mbits
    if isinstance(value, float):
        if math.isnan(value):
            return inf | 1 << (mbits - 1)
        sign = int(math.copysign(1, value) < 0) << (width - 1)
        if math.isinf(value):
            return sign | inf
        value = abs(Fraction(value))
    else:
        value = Fraction(value)
        sign = int(value < 0) << (width - 1)
        value = abs(value)
    if value == 0:
        return sign
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    units = value / Fraction(2) ** (exponent - mbits)
    whole = units.numerator // units.denominator
    rest = units - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1):
        whole += 1
    raw = ((exponent + bias - 1) << mbits) + whole
    return sign | min(raw, inf)


Number = int | float | Fraction
FINITE = math.isfinite


def add(a: float, b: float) -> Number:
    if FINITE(a) and FINITE(b):
        exact = Fraction(a) + Fraction(b)
        return exact if exact else a + b
    return a + b


def sub(a: float, b: float) -> Number:
    return add(a, -b)


def mul(a: float, b: float) -> Number:
    if FINITE(a) and FINITE(b) and a and b:
        return Fraction(a) * Fraction(b)
    return a * b


def fma(a: float, b: float, c: float) -> Number:
    if not (FINITE(a) and FINITE(b)):
        return a * b + c
    if not FINITE(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return exact
    zero = math.copysign(1, a) * math.copysign(1, b) * 0.0 if not (a and b) else 1.0
    return zero + c if not (a and b) else 0.0


def div(a: float, b: float) -> Number:
    if FINITE(a) and FINITE(b) and b and a:
        return Fraction(a) / Fraction(b)
    sign = math.copysign(1, a) * math.copysign(1, b)
    if a != a or b != b or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return NAN
    return sign * (math.inf if b == 0 or math.isinf(a) else 0.0)


def legacy_mul(a: float, b: float) -> Number:
    return 0.0 if a == 0 or b == 0 else mul(a, b)


def minmax(bigger: bool) -> Callable[[float, float], float]:
    def choose(a: float, b: float) -> float:
        if isinstance(a, Signalling) or isinstance(b, Signalling):  # MODE.IEEE is set
            return NAN
        if a != a or b != b:
            return b if a != a else a
        if a == b:  # -0 is below +0
            first = (math.copysign(1, a) > 0) == bigger
            return a if first else b
        return max(a, b) if bigger else min(a, b)

    return choose


fmin, fmax = minmax(False), minmax(True)


def med3(a: float, b: float, c: float) -> float:
    if a != a or b != b or c != c:
        return fmin(fmin(a, b), c)
    return fmax(fmin(a, b), fmin(fmax(a, b), c))


def to_int(kind: str, value: float) -> int:
    """Converts a float to an integer: rounds toward zero, saturates, and converts NaN to 0."""
    width = bits_of_type(kind)
    low, high = (0, 2**width - 1) if kind[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    if value != value:
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, math.trunc(value)))


def whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """Makes a rounding function such as floor or ceil; the function preserves infinities, NaN and
    the sign of zero."""

    def apply(a: float) -> float:
        if not FINITE(a):
            return a
        result = function(a)
        return math.copysign(float(result), a) if result == 0 else float(result)

    return apply


def fract(kind: str) -> Callable[[float], Number]:
    below_one = {"f16": 1 - 2**-11, "f32": 1 - 2**-24, "f64": 1 - 2**-53}[kind]

    def apply(a: float) -> Number:
        if not FINITE(a):
            return NAN
        exact = Fraction(a) - math.floor(a)
        rounded = decode(kind, encode(kind, exact))
        return below_one if rounded >= 1 else exact

    return apply


def frexp_exp(a: float) -> int:
    return math.frexp(a)[1] if FINITE(a) and a else 0


def frexp_mant(a: float) -> float:
    return math.frexp(a)[0] if FINITE(a) else a


def ldexp(a: float, n: int) -> Number:
    if not FINITE(a) or a == 0:
        return a
    return Fraction(a) * Fraction(2) ** max(-5000, min(5000, n))


def s24(a: int) -> int:
    a &= 0xFFFFFF
    return a - (1 << 24) if a >> 23 else a


def u24(a: int) -> int:
    return a & 0xFFFFFF


def field(value: int, offset: int, width: int, signed: bool) -> int:
    part = value >> offset & ((1 << width) - 1)
    if signed and width and part >> (width - 1):
        part -= 1 << width
    return part


def parts(value: int, width: int, signed: bool) -> list[int]:
    """Returns the 4-, 8- or 16-bit parts of a word."""
    kind = signed and width
    out = [value >> n & ((1 << width) - 1) for n in range(0, 32, width)]
    return [p - (1 << width) if kind and p >> (width - 1) else p for p in out]


def both(a: int, b: int, width: int, signed: bool) -> list[tuple[int, int]]:
    return list(zip(parts(a, width, signed), parts(b, width, signed), strict=True))


def dot(a: int, b: int, c: int, width: int, signed: bool) -> int:
    return (
        sum(x * y for x, y in zip(parts(a, width, signed), parts(b, width, signed), strict=False))
        + c
    )


def perm(a: int, b: int, select: int) -> int:
    data = a << 32 | b
    result = 0
    for n, s in enumerate(parts(select, 8, False)):
        if s < 8:
            byte = data >> 8 * s & 255
        elif s < 12:
            byte = 255 if data >> (16 * (s - 8) + 15) & 1 else 0
        else:
            byte = 0 if s == 12 else 255
        result |= byte << 8 * n
    return result


def toward_zero_f16(raw: int) -> int:
    value = decode("f32", raw)
    sign = raw >> 16 & 0x8000
    if not FINITE(value):
        return encode("f16", value)
    size = abs(Fraction(value))
    if size >= 65504:
        return sign | 0x7BFF
    nearest = encode("f16", size)
    return sign | (nearest - 1 if Fraction(decode("f16", nearest)) > size else nearest)


def pack(lo: int, hi: int) -> int:
    return lo & 0xFFFF | (hi & 0xFFFF) << 16


def snorm(value: float) -> int:
    return 0 if value != value else round(Fraction(max(-1.0, min(1.0, value))) * 32767)


def unorm(value: float) -> int:
    return 0 if value != value else round(Fraction(max(0.0, min(1.0, value))) * 65535)


def clamp(low: int, value: int, high: int) -> int:
    return max(low, min(high, value))
