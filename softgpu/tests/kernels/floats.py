"""Arithmetic of f16, f32, f64 and bf16, even with special values, is bit-identical to NumPy's."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.compare import bf16, from_bf16
from softgpu.tests.kernels.inputs import FLOATS, any_floats
from softgpu.tests.kernels.program import COUNT, Launch, Module, elements, elementwise

MODULE = Module("floats", single=True)
BF16 = Module("bf16", sample=True)

libm = ctypes.CDLL(ctypes.util.find_library("m"))


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Returns a * b + c, rounded once. The C library computes f32 and f64; f16 is computed in f64,
    which represents the product exactly."""
    if a.dtype == np.float16:
        exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return exact.astype(np.float16)
    name, kind = ("fmaf", ctypes.c_float) if a.dtype == np.float32 else ("fma", ctypes.c_double)
    function = getattr(libm, name)
    function.argtypes, function.restype = [kind] * 3, kind
    return np.array([function(*v) for v in zip(a, b, c, strict=True)], a.dtype)


def _larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns IEEE 754's maximum, in which NaN wins and +0 is greater than -0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -_larger(-a, -b)


def _away(a: np.ndarray) -> np.ndarray:
    """Rounds as C's round function does: halves away from zero."""
    whole = np.trunc(a)
    with np.errstate(invalid="ignore"):
        up = np.abs(a - whole) >= 0.5
    return np.copysign(np.where(up, np.abs(whole) + 1, np.abs(whole)).astype(a.dtype), a)


Formula = Callable[..., np.ndarray]

_OPERATIONS: dict[str, tuple[int, str, Formula]] = {
    "add": (2, "%r = arith.addf %a, %b : {t}", np.add),
    "sub": (2, "%r = arith.subf %a, %b : {t}", np.subtract),
    "mul": (2, "%r = arith.mulf %a, %b : {t}", np.multiply),
    "div": (2, "%r = arith.divf %a, %b : {t}", np.divide),
    "sqrt": (1, "%r = math.sqrt %a : {t}", np.sqrt),
    "fma": (3, "%r = math.fma %a, %b, %c : {t}", fma),
    "neg": (1, "%r = arith.negf %a : {t}", np.negative),
    "abs": (1, "%r = math.absf %a : {t}", np.abs),
    "copysign": (2, "%r = math.copysign %a, %b : {t}", np.copysign),
    "maximum": (2, "%r = arith.maximumf %a, %b : {t}", _larger),
    "minimum": (2, "%r = arith.minimumf %a, %b : {t}", _smaller),
    # maxnum and minnum of +0 and -0 may return either zero, so the program adds +0 to the result.
    "maxnum": (2, "%z = arith.constant 0.0 : {t}\n%n = arith.maxnumf %a, %b : {t}\n"
               "%r = arith.addf %n, %z : {t}", lambda a, b: np.fmax(a, b) + a.dtype.type(0)),
    "minnum": (2, "%z = arith.constant 0.0 : {t}\n%n = arith.minnumf %a, %b : {t}\n"
               "%r = arith.addf %n, %z : {t}", lambda a, b: np.fmin(a, b) + a.dtype.type(0)),
    "floor": (1, "%r = math.floor %a : {t}", np.floor),
    "ceil": (1, "%r = math.ceil %a : {t}", np.ceil),
    "trunc": (1, "%r = math.trunc %a : {t}", np.trunc),
    "round": (1, "%r = math.round %a : {t}", _away),
    "roundeven": (1, "%r = math.roundeven %a : {t}", np.rint),
    "square_minus": (3, "%p = arith.mulf %a, %a : {t}\n%q = arith.mulf %b, %c : {t}\n"
                     "%r = arith.subf %p, %q : {t}", lambda a, b, c: a * a - b * c),
}  # fmt: skip

_COMPARISONS = {
    "oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal, "olt": np.less,
    "ole": np.less_equal, "une": np.not_equal,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b),
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip


def _operation(kind: str, count: int, formula: Formula) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        inputs = [any_floats(rng, FLOATS[kind], COUNT) for _ in range(count)]
        with np.errstate(all="ignore"):
            return elements(inputs, formula(*inputs))

    return data


def _compared(kind: str) -> str:
    """Returns a mask with one bit for each kind of comparison."""
    lines = ["%s0 = arith.constant 0 : i32"]
    for bit, name in enumerate(_COMPARISONS):
        lines += [
            f"%p{bit} = arith.cmpf {name}, %a, %b : {kind}",
            f"%e{bit} = arith.extui %p{bit} : i1 to i32",
            f"%k{bit} = arith.constant {bit} : i32",
            f"%h{bit} = arith.shli %e{bit}, %k{bit} : i32",
            f"%s{bit + 1} = arith.ori %s{bit}, %h{bit} : i32",
        ]
    lines += ["%z = arith.constant 0 : i32", f"%r = arith.ori %s{len(_COMPARISONS)}, %z : i32"]
    return "\n".join(lines)


def _comparison(kind: str) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a, b = (any_floats(rng, FLOATS[kind], COUNT) for _ in range(2))
        b = np.where(rng.random(COUNT) < 0.3, a, b)
        bits = [f(a, b).astype(np.int32) << n for n, f in enumerate(_COMPARISONS.values())]
        return elements([a, b], np.bitwise_or.reduce(bits))

    return data


for _kind in FLOATS:
    for _name, (_arity, _body, _formula) in _OPERATIONS.items():
        _full = f"{_name}_{_kind}"
        _text = elementwise(_full, [_kind] * _arity, _kind, _body.format(t=_kind))
        MODULE.add(_full, _text, _operation(_kind, _arity, _formula))
    _full = f"compare_{_kind}"
    MODULE.add(_full, elementwise(_full, [_kind] * 2, "i32", _compared(_kind)), _comparison(_kind))


# ---- bf16: gfx90a only converts from and to bf16 -----------------------------------------------


def _bf16_operation(formula: Formula) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        inputs = [bf16(any_floats(rng, np.float32, COUNT)) for _ in range(2)]
        with np.errstate(all="ignore"):
            expected = bf16(formula(*(from_bf16(values) for values in inputs)))
        return elements(inputs, expected)

    return data


# Kernels store every NaN as 0x7fc0, because the result of an operation may be any NaN.
_QUIET = """
%nan = arith.constant 0x7FC0 : bf16
%isnan = arith.cmpf uno, %v, %v : bf16
%r = arith.select %isnan, %nan, %v : bf16"""

for _name in ("add", "sub", "mul", "div", "maximum", "minimum"):
    _, _body, _formula = _OPERATIONS[_name]
    _text = elementwise(
        f"{_name}_bf16", ["bf16"] * 2, "bf16", _body.format(t="bf16").replace("%r", "%v") + _QUIET
    )
    BF16.add(f"{_name}_bf16", _text, _bf16_operation(_formula))


@BF16.program(
    elementwise(
        "by_way_of_f32",
        ["bf16", "bf16"],
        "bf16",
        """%x = arith.extf %a : bf16 to f32
        %y = arith.extf %b : bf16 to f32
        %xx = arith.mulf %x, %x : f32
        %sum = arith.addf %xx, %y : f32
        %v = arith.truncf %sum : f32 to bf16"""
        + _QUIET,
    )
)
def by_way_of_f32(rng: np.random.Generator) -> Launch:
    return _bf16_operation(lambda x, y: x * x + y)(rng)
