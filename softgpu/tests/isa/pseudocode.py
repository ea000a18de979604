"""Runs AMD's pseudocode of the CDNA instructions, as an oracle that is independent of the
interpreter.

The tinygrad package contains the pseudocode, extracted from AMD's ISA documents."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from types import CodeType, SimpleNamespace
from typing import Any

from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE

from . import oracle as o
from .pcode import python
from .values import Denormal, Special, Value, as_value, both, convert


@lru_cache
def texts() -> dict[str, str]:
    """Maps each mnemonic to the pseudocode of the instruction."""
    found: dict[str, str] = {}
    for op, text in PCODE.items():
        name = op.name.lower().removesuffix("_e32").removesuffix("_e64")
        found.setdefault(name, text)
    return found


@cache
def compiled(name: str) -> tuple[CodeType, tuple[str, ...]]:
    source, names = python(texts()[name])
    return compile(source, name, "exec"), tuple(names)


class Array(dict):  # type: ignore[type-arg]
    """Values that are indexed by number, such as registers."""

    def __getitem__(self, index: Any) -> Any:
        return super().get(int(index), Value("b", 0, 0))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(int(index), as_value(value))


class Memory:
    """Implements MEM[address].u32 and similar accesses to bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def __getitem__(self, address: Any) -> Cell:
        return Cell(self, int(address))

    def __setitem__(self, address: Any, value: Value) -> None:
        setattr(self[address], f"b{value.width}", value)


class Cell:
    """A memory location."""

    def __init__(self, memory: Memory, address: int) -> None:
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "address", address)

    def __getattr__(self, name: str) -> Value:
        size = int(name[1:]) // 8
        raw = self.memory.data[self.address : self.address + size]
        return Value(name[0], 8 * size, int.from_bytes(raw, "little"))

    def __setattr__(self, name: str, value: Any) -> None:
        size = int(name[1:]) // 8
        bits = convert(value, name[0], 8 * size).bits
        self.memory.data[self.address : self.address + size] = bits.to_bytes(size, "little")

    def copy(self) -> Value:
        return self.b64


def sized(width: int, number: float) -> Value:
    if isinstance(number, float):
        return Value("f", width, o.encode(f"f{width}", number))
    return Value("u", width, number)


def cast(width: int, kind: str, value: Any) -> Value:
    v = as_value(value)
    if kind == "b" and v.kind != "f":
        return Value("b", width, int(v.number))
    if kind == "f" and v.kind != "f" and not v.width and v.bits > 255:
        return Value("f", width, v.bits)  # a hexadecimal constant
    return convert(v, kind, width)


def concatenated(*parts: Any) -> Value:
    bits = width = 0
    for part in map(as_value, parts):
        bits = bits << part.width | part.bits
        width += part.width
    return Value("b", width, bits)


def spread(value: Value, *views: Value) -> None:
    bits = value.bits
    for view in reversed(views):
        view.write(0, view.width, bits & ((1 << view.width) - 1))
        bits >>= view.width


def counted(low: Any, high: Any) -> Iterator[Value]:
    return (Value("u", 32, n) for n in range(int(low), int(high) + 1))


def exponent(v: Value) -> Value:
    ebits, mbits = o.FORMATS[f"f{v.width}"]
    return Value("i", 32, v.bits >> mbits & ((1 << ebits) - 1))


def real(function: Callable[..., Any]) -> Callable[..., Value]:
    """Wraps a function of floats; the wrapper rounds the result to the type of the widest
    argument."""

    def apply(*values: Any) -> Value:
        floats = [as_value(v) for v in values]
        width = max(v.width for v in floats if v.kind == "f")
        return Value("f", width, o.encode(f"f{width}", function(*(v.number for v in floats))))

    return apply


def absolute(x: Any) -> Value:
    v = as_value(x)
    if v.kind == "f":
        return Value("f", v.width, v.bits & ((1 << (v.width - 1)) - 1))
    return Value(v.kind, v.width, abs(int(v.number)))


def difference(x: Any, y: Any) -> Value:
    a, b = both(x, y)
    return Value("u", max(a.width, 32), abs(int(a.number) - int(b.number)))


def quiet(v: Value) -> Value:
    return Value("f", v.width, v.bits | 1 << (o.FORMATS[f"f{v.width}"][1] - 1))


def byte_permute(data: Value, select: Any) -> Value:
    return Value("b", 8, o.perm(data.bits >> 32, data.bits & 0xFFFFFFFF, int(select)) & 0xFF)


def saturate_8(x: Any) -> Value:
    return Value("u", 8, o.clamp(0, int(as_value(x).i16.number), 255))


def logarithm(a: float) -> float:
    return -math.inf if a == 0 else o.NAN if a < 0 or a != a else math.log2(a)


def root(a: float) -> float:
    return a if a == 0 or a != a else o.NAN if a < 0 else math.sqrt(a)


def power(base: float, n: float) -> float:
    if n != n:
        return n
    return math.inf if n > 1000 else 0.0 if n < -2000 else base**n


def turns(function: Callable[[float], float], a: float) -> float:
    return function(a) if math.isfinite(a) else o.NAN


def is_nan(x: Any) -> bool:
    return as_value(x).number != as_value(x).number


def is_signalling(x: Any) -> bool:
    return isinstance(as_value(x).number, o.Signalling)


FUNCTIONS: dict[str, Any] = {
    "sized": sized,
    "cast": cast,
    "literal": lambda n: Value("u", 0, n),
    "decimal": lambda x: Value("f", 64, o.encode("f64", x)),
    "concatenated": concatenated,
    "spread": spread,
    "plain": lambda x: x.copy() if isinstance(x, (Value, Cell)) else as_value(x),
    "counted": counted,
    "unset": lambda width: Value("b", width, 0),
    "Array": Array,
    "isNAN": is_nan,
    "isSignalNAN": is_signalling,
    "isQuietNAN": lambda x: is_nan(x) and not is_signalling(x),
    "cvtToQuietNAN": quiet,
    "exponent": exponent,
    "sign": lambda v: Value("u", 1, v.bits >> (v.width - 1)),
    "mantissa": real(o.frexp_mant),
    "abs": absolute,
    "fma": real(o.fma),
    "ldexp": real(o.ldexp),
    "floor": real(o.whole(math.floor)),
    "trunc": real(o.whole(math.trunc)),
    "fract": real(lambda a: a - math.floor(a)),
    "sqrt": real(root),
    "log2": real(logarithm),
    "pow": real(power),
    "sin": real(lambda a: turns(math.sin, a)),
    "cos": real(lambda a: turns(math.cos, a)),
    "apart": lambda a, b: (as_value(a) < b) or (as_value(a) > b),
    "OPSEL": Value("u", 4, 0),
    "CVT_OFF_TABLE": [Value("f", 32, o.encode("f32", (n - 16 * (n > 7)) / 16)) for n in range(16)],
    "isEven": lambda v: math.isfinite(v.number) and int(v.number) % 2 == 0,
    "signext": lambda v: Value("i", 64, int(convert(v, "i", v.width).number)),
    "signext_from_bit": lambda v, n: Value("i", v.width, o.field(v.bits, 0, int(n), True)),
    "bitCount": lambda v: Value("u", 32, v.bits.bit_count()),
    "ABSDIFF": difference,
    "SAT8": saturate_8,
    "BYTE_PERMUTE": byte_permute,
    "CalcDsAddr": lambda a, low, high: as_value(int(a) + int(low) + 256 * int(high)),
    "NAN": Special(lambda width: Value("f", width, o.encode(f"f{width}", o.NAN))),
    "INF": Special(lambda width: Value("f", width, o.encode(f"f{width}", math.inf))),
    "DENORM": Special(lambda width: Denormal()),
    "OVERFLOW_F32": Value("f", 32, 0x7F800000),
    "UNDERFLOW_F32": Value("f", 32, 0),
    "OVERFLOW_F64": Value("f", 64, 0x7FF << 52),
    "UNDERFLOW_F64": Value("f", 64, 0),
    "PI": Value("f", 64, o.encode("f64", math.pi)),
    "WAVE_MODE": SimpleNamespace(IEEE=True),
    "ROUND_TOWARD_ZERO": 3,
    "ROUND_MODE": 0,
}
TYPE = r"(bf16|[uif](?:4|8|16|32|64))"


class Environment(dict):  # type: ignore[type-arg]
    """Maps the names in one evaluation to values. A name that is not an operand means a
    function."""

    def __missing__(self, name: str) -> Any:
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        if found := re.fullmatch(f"{TYPE}_to_{TYPE}", name):
            return lambda v: self.converted(v, found[1], found[2])
        if found := re.fullmatch(r"f(16|32)_to_([su])norm", name):
            norm = o.snorm if found[2] == "s" else o.unorm
            return lambda v: Value("u", 16, norm(v.number))
        if re.match(r"Calc\w+Addr", name):
            return lambda *parts: as_value(sum(int(p) for p in parts))
        if re.match(r"[sv]_", name):
            return lambda *values: called(name, *values)
        raise KeyError(name)

    def converted(self, x: Any, source: str, to: str) -> Value:
        v = as_value(x)
        if v.kind == "f" and source[0] == "f":
            v = convert(v, "f", int(source[1:]))
        else:
            v = getattr(v, source)
        kind, width = ("f", 32) if to == "bf16" else (to[0], int(to[1:]))
        if kind != "f" and v.kind == "f":
            return Value(kind, width, o.to_int(to, v.number))
        if kind != "f":
            low = -(1 << (width - 1)) if kind == "i" else 0
            return Value(kind, width, o.clamp(low, int(v.number), low + (1 << width) - 1))
        if to == "f16" and int(as_value(self["ROUND_MODE"])) == 3:
            return Value("f", 16, o.toward_zero_f16(v.bits))
        return convert(v, kind, width)


def called(name: str, *values: Any) -> Value:
    """Runs an instruction that the pseudocode of another instruction calls as a function."""
    operands = {f"S{n}": Value("b", 64, as_value(v).bits) for n, v in enumerate(values)}
    result = evaluate(name, {**operands, "D0": Value("b", 64, 0)})["D0"]
    return getattr(result, name.rsplit("_", 1)[1].replace("u8", "u32"))


def evaluate(name: str, operands: dict[str, Any]) -> Environment:
    """Runs an instruction's pseudocode. The pseudocode changes operands in place, or replaces
    operands in the returned mapping."""
    code, piecewise = compiled(name)
    names = Environment(operands)
    for piece in piecewise:
        if piece not in names and piece not in FUNCTIONS:
            names[piece] = Value("b", 0, 0)
    exec(code, {"__builtins__": {}}, names)
    return names
