"""Integers of 1 to 64 bits: arithmetic, division, shifts, bits and comparisons, all exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.inputs import INTEGERS, UNSIGNED, any_integers, nonzero
from softgpu.tests.kernels.program import COUNT, Launch, Module, elements, elementwise

MODULE = Module("integers", single=True)
DIVISION = Module("division", sample=True, unoptimised=True)

Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the quotient, rounded toward zero."""
    floor = a // b
    return floor + ((a - floor * b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _unsigned(formula: Formula) -> Formula:
    def of_signed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        unsigned = a.dtype.str.replace("i", "u")
        return formula(a.view(unsigned), b.view(unsigned)).astype(unsigned).view(a.dtype)

    return of_signed


_DIVISIONS: dict[str, Formula] = {
    "divsi": divide,
    "remsi": lambda a, b: a - divide(a, b) * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": _unsigned(lambda a, b: a // b),
    "remui": _unsigned(lambda a, b: a % b),
    "ceildivui": _unsigned(lambda a, b: a // b + (a % b != 0)),
}

_SIMPLE: dict[str, Formula] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": _unsigned(np.maximum),
    "minui": _unsigned(np.minimum),
}

_SHIFTS: dict[str, Formula] = {
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": _unsigned(np.right_shift),
}


def _divided(kind: str, formula: Formula) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a = any_integers(rng, INTEGERS[kind], COUNT)
        b = nonzero(any_integers(rng, INTEGERS[kind], COUNT))
        # Replaces the smallest dividend, because the division by -1 would overflow. The negation of
        # the dividend in ceildivsi would overflow too.
        a = np.where(a == np.iinfo(a.dtype).min, a + 1, a)
        return elements([a, b], formula(a, b))

    return data


def _simple(kind: str, formula: Formula, shift: bool) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a, b = (any_integers(rng, INTEGERS[kind], COUNT) for _ in range(2))
        if shift:
            b = b & (8 * b.itemsize - 1)
        return elements([a, b], formula(a, b))

    return data


for _kind in INTEGERS:
    for _name, _formula in _DIVISIONS.items():
        _full = f"{_name}_{_kind}"
        _body = f"%r = arith.{_name} %a, %b : {_kind}"
        DIVISION.add(
            _full, elementwise(_full, [_kind] * 2, _kind, _body), _divided(_kind, _formula)
        )
    for _name, _formula in {**_SIMPLE, **_SHIFTS}.items():
        _full = f"{_name}_{_kind}"
        _body = f"%r = arith.{_name} %a, %b : {_kind}"
        MODULE.add(
            _full,
            elementwise(_full, [_kind] * 2, _kind, _body),
            _simple(_kind, _formula, _name in _SHIFTS),
        )


# ---- every comparison, and counts of bits --------------------------------------------------------

_COMPARISONS: dict[str, Formula] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}
_UNSIGNED_COMPARISONS = {
    "ult": np.less,
    "ule": np.less_equal,
    "ugt": np.greater,
    "uge": np.greater_equal,
}


def _compared(kind: str) -> str:
    lines = ["%s0 = arith.constant 0 : i32"]
    names = [*_COMPARISONS, *_UNSIGNED_COMPARISONS]
    for bit, name in enumerate(names):
        lines += [
            f"%p{bit} = arith.cmpi {name}, %a, %b : {kind}",
            f"%e{bit} = arith.extui %p{bit} : i1 to i32",
            f"%k{bit} = arith.constant {bit} : i32",
            f"%h{bit} = arith.shli %e{bit}, %k{bit} : i32",
            f"%s{bit + 1} = arith.ori %s{bit}, %h{bit} : i32",
        ]
    lines.append(f"%r = arith.ori %s{len(names)}, %s0 : i32")
    return "\n".join(lines)


def _comparison(kind: str) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a, b = (any_integers(rng, INTEGERS[kind], COUNT) for _ in range(2))
        b = np.where(rng.random(COUNT) < 0.3, a, b)
        found = [f(a, b) for f in _COMPARISONS.values()]
        ua, ub = a.view(UNSIGNED[kind]), b.view(UNSIGNED[kind])
        found += [f(ua, ub) for f in _UNSIGNED_COMPARISONS.values()]
        expected = sum(f.astype(np.int32) << n for n, f in enumerate(found))
        return elements([a, b], np.asarray(expected))

    return data


def _binary(values: np.ndarray) -> np.ndarray:
    """Returns a row of bits for each value, the highest bit first."""
    raw = values.astype(values.dtype.newbyteorder(">")).view(np.uint8)
    return np.unpackbits(raw.reshape(len(values), -1), axis=1)


def _leading(bits: np.ndarray) -> np.ndarray:
    return np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1])


_COUNTS = {
    "ctpop": lambda a: _binary(a).sum(axis=1),
    "ctlz": lambda a: _leading(_binary(a)),
    "cttz": lambda a: _leading(_binary(a)[:, ::-1]),
    "absi": np.abs,
}


def _count(kind: str, formula: Callable) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a = any_integers(rng, INTEGERS[kind], COUNT)
        return elements([a], formula(a).astype(a.dtype))

    return data


for _kind in INTEGERS:
    _full = f"compare_{_kind}"
    MODULE.add(_full, elementwise(_full, [_kind] * 2, "i32", _compared(_kind)), _comparison(_kind))
    for _name, _count_of in _COUNTS.items():
        _full = f"{_name}_{_kind}"
        _text = elementwise(_full, [_kind], _kind, f"%r = math.{_name} %a : {_kind}")
        MODULE.add(_full, _text, _count(_kind, _count_of))


# ---- wider results, and single bits --------------------------------------------------------------


def _extended(signed: bool, kind: str) -> str:
    sign = "s" if signed else "u"
    return f"%low, %r = arith.mul{sign}i_extended %a, %b : {kind}"


def _high(signed: bool, kind: str) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a, b = (any_integers(rng, INTEGERS[kind], COUNT) for _ in range(2))
        width = 8 * a.itemsize
        x, y = (v if signed else v.view(UNSIGNED[kind]) for v in (a, b))
        high = (x.astype(object) * y.astype(object)) >> width
        return elements([a, b], (high & (2**width - 1)).astype(UNSIGNED[kind]).view(a.dtype))

    return data


for _kind in INTEGERS:
    for _signed in (False, True):
        _full = f"high_{'s' if _signed else 'u'}_{_kind}"
        _text = elementwise(_full, [_kind] * 2, _kind, _extended(_signed, _kind))
        MODULE.add(_full, _text, _high(_signed, _kind))


@MODULE.program(
    elementwise(
        "carries",
        ["i64", "i64"],
        "i64",
        """%sum, %carry = arith.addui_extended %a, %b : i64, i1
        %one = arith.extui %carry : i1 to i64
        %r = arith.xori %sum, %one : i64""",
    )
)
def carries(rng: np.random.Generator) -> Launch:
    a, b = (any_integers(rng, np.int64, COUNT) for _ in range(2))
    total = a + b
    carry = total.view(np.uint64) < a.view(np.uint64)
    return elements([a, b], total ^ carry.astype(np.int64))


@MODULE.program(
    elementwise(
        "single_bits",
        ["i1", "i1"],
        "i1",
        """%x = arith.xori %a, %b : i1
        %s = arith.addi %x, %a : i1
        %m = arith.muli %a, %b : i1
        %e = arith.cmpi ult, %a, %b : i1
        %q = arith.select %e, %s, %m : i1
        %r = arith.ori %q, %m : i1""",
    )
)
def single_bits(rng: np.random.Generator) -> Launch:
    a, b = (rng.random(COUNT) < 0.5 for _ in range(2))
    both = a & b
    return elements([a, b], np.where(~a & b, (a ^ b) ^ a, both) | both)
