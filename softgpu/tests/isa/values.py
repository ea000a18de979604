"""Represents the values of AMD's pseudocode as bits with a type. Suffixes like `.f32` or `[15 : 0]`
reinterpret the bits.

Integers wrap at their own width. Each float operation computes an exact result, and rounds the
result once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from . import oracle as o

Raw = int | float | Fraction


class Special:
    """The constants NAN, INF and DENORM; an attribute such as `.f32` selects the width."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def __getattr__(self, name: str) -> Any:
        return self.make(int(name[1:]))

    def __neg__(self) -> Value:
        return -self.f64


class Value:
    """A value of `kind` u, i, f or b. An integer of width 0 is a literal."""

    __slots__ = ("bits", "kind", "owner", "shift", "width")

    def __init__(self, kind: str, width: int, bits: int, owner: Any = None, shift: int = 0) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "bits", bits & ((1 << width) - 1) if width else bits)
        object.__setattr__(self, "owner", owner)  # the value that a write through this view changes
        object.__setattr__(self, "shift", shift)

    def copy(self) -> Value:
        return Value(self.kind, self.width, self.bits)

    @property
    def number(self) -> Raw:
        if not self.width:
            return self.bits
        if self.kind == "f":
            return o.decode(f"f{self.width}", self.bits)
        return o.decode(f"{self.kind}{self.width}", self.bits)

    # Views.
    def __getattr__(self, name: str) -> Value:
        if name == "f":
            return self
        if name == "bf16":
            return Value("f", 32, (self.bits & 0xFFFF) << 16)
        kind, width = name[0], int(name[1:])
        bits = self.bits
        if self.kind == "f" and kind == "f" and width != self.width:
            return convert(self, "f", width)
        if not self.width and kind == "f":
            bits = o.encode(name, Fraction(bits))
        elif kind == "i" and self.kind == "i" and width > self.width:
            bits = int(self.number)
        return Value(kind, width, bits, self, 0)

    def __setattr__(self, name: str, value: Any) -> None:
        kind, width = name[0], int(name[1:])
        self.write(0, width, convert(value, kind, width).bits)

    def __getitem__(self, index: Any) -> Value:
        if isinstance(index, slice):
            high, low = int(index.start), int(index.stop)
            if high < low:  # bits in the reverse order
                width = low - high + 1
                reversed_bits = int(f"{self.bits >> high & ((1 << width) - 1):0{width}b}"[::-1], 2)
                return Value("b", width, reversed_bits)
            width = high - low + 1
            return Value("b", width, self.bits >> low, self, low)
        return Value("u", 1, self.bits >> int(index), self, int(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        high, low = (
            (int(index.start), int(index.stop)) if isinstance(index, slice) else (int(index),) * 2
        )
        self.write(low, high - low + 1, as_value(value).bits)

    def write(self, shift: int, width: int, bits: int) -> None:
        mask = ((1 << width) - 1) << shift
        new = self.bits & ~mask | bits << shift & mask
        if self.owner is not None:
            self.owner.write(self.shift + shift, width, bits)
        elif self.width and shift + width > self.width:
            object.__setattr__(self, "width", shift + width)
        object.__setattr__(self, "bits", new)

    # Arithmetic.
    def __add__(self, other: Any) -> Value:
        return arithmetic(self, other, lambda a, b: a + b, o.add)

    def __sub__(self, other: Any) -> Value:
        return arithmetic(self, other, lambda a, b: a - b, o.sub)

    def __mul__(self, other: Any) -> Value:
        return arithmetic(self, other, lambda a, b: a * b, o.mul)

    def __truediv__(self, other: Any) -> Value:
        return arithmetic(self, other, lambda a, b: a // b, o.div)

    def __mod__(self, other: Any) -> Value:
        return arithmetic(self, other, lambda a, b: a % b, math.fmod)

    def __pow__(self, other: Any) -> Value:
        return arithmetic(self, other, lambda a, b: a**b, math.pow)

    def __neg__(self) -> Value:
        if self.kind == "f":
            return Value("f", self.width, self.bits ^ 1 << (self.width - 1))
        return Value(self.kind, self.width, -self.bits)

    def __invert__(self) -> Value:
        return Value(self.kind, self.width, ~self.bits)

    def __and__(self, other: Any) -> Value:
        return bitwise(self, other, lambda a, b: a & b)

    def __or__(self, other: Any) -> Value:
        return bitwise(self, other, lambda a, b: a | b)

    def __xor__(self, other: Any) -> Value:
        return bitwise(self, other, lambda a, b: a ^ b)

    def __lshift__(self, other: Any) -> Value:
        return Value(self.kind, promoted(self.width), self.bits << int(as_value(other)))

    def __rshift__(self, other: Any) -> Value:
        return Value(self.kind, promoted(self.width), int(self.number) >> int(as_value(other)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Denormal):
            return other.includes(self)
        return compare(self, other, lambda a, b: a == b)

    def __ne__(self, other: object) -> bool:
        a, b = both(self, other)
        return not compare(a, b, lambda x, y: x == y)

    def __lt__(self, other: Any) -> bool:
        return compare(self, other, lambda a, b: a < b)

    def __le__(self, other: Any) -> bool:
        return compare(self, other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> bool:
        return compare(self, other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> bool:
        return compare(self, other, lambda a, b: a >= b)

    def __bool__(self) -> bool:
        return self.number != 0

    def __int__(self) -> int:
        return int(self.number)

    def __index__(self) -> int:
        return int(self.number)

    def __hash__(self) -> int:
        return hash((self.kind, self.width, self.bits))


class Denormal:
    """A pattern that matches any denormal number."""

    def includes(self, v: Value) -> bool:
        ebits, mbits = o.FORMATS[f"f{v.width}"]
        return v.bits >> mbits & ((1 << ebits) - 1) == 0 and v.bits & ((1 << mbits) - 1) != 0


def promoted(width: int) -> int:
    """Returns the width for integer arithmetic: 0 for literals, otherwise at least 32 bits."""
    return max(width, 32) if width else 0


def as_value(x: Any) -> Value:
    if isinstance(x, Value):
        return x
    if isinstance(x, Special):
        return x.f64
    if isinstance(x, bool):
        return Value("u", 1, int(x))
    if isinstance(x, float):
        return Value("f", 64, o.encode("f64", x))
    return Value("u", 0, x)


def both(a: Any, b: Any) -> tuple[Value, Value]:
    """Converts both operands to one type: to the wider type, except that a float type takes
    precedence over an integer type."""
    x, y = as_value(a), as_value(b)
    if x.kind == "f" or y.kind == "f":
        width = max(v.width for v in (x, y) if v.kind == "f")
        return convert(x, "f", width), convert(y, "f", width)
    width = promoted(max(x.width, y.width))
    if not width:
        return x, y
    kinds = {v.kind for v in (x, y) if v.width}
    kind = "i" if kinds == {"i"} else "u"
    return convert(x, kind, width), convert(y, kind, width)


def convert(x: Any, kind: str, width: int) -> Value:
    """Converts by value between integers and floats; an untyped value retains its bits."""
    v = as_value(x)
    if v.kind == kind and v.width == width:
        return v
    if kind == "f" and v.kind == "b" and v.width == width:
        return Value("f", width, v.bits)
    if kind == "f":
        number = v.number
        if isinstance(number, o.Signalling):
            return Value("f", width, o.encode(f"f{width}", math.inf) | 1)
        exact = number if isinstance(number, float) else Fraction(number)
        return Value("f", width, o.encode(f"f{width}", exact))
    if v.kind == "f":
        return Value(kind, width, v.bits if width == v.width else int(v.bits))
    return Value(kind, width, int(v.number))


def arithmetic(
    a: Any, b: Any, whole: Callable[[int, int], int], exact: Callable[[float, float], Raw]
) -> Value:
    x, y = both(a, b)
    if x.kind == "f":
        return Value("f", x.width, o.encode(f"f{x.width}", exact(x.number, y.number)))
    kind = x.kind if x.kind != "b" else "u"
    return Value(kind, x.width, whole(int(x.number), int(y.number)))


def bitwise(a: Any, b: Any, operation: Callable[[int, int], int]) -> Value:
    x, y = as_value(a), as_value(b)
    width = max(x.width, y.width)
    wide = [int(v.number) if v.kind == "i" else v.bits for v in (x, y)]
    kind = x.kind if x.width >= y.width else y.kind
    return Value("u" if kind == "f" else kind, width, operation(*wide))


def compare(a: Any, b: Any, test: Callable[[Any, Any], bool]) -> bool:
    x, y = both(a, b)
    return test(x.number, y.number)
