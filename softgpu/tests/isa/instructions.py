"""Lists the expected results of the vector instructions that AMD's pseudocode does not give, or
gives wrongly for some operands (cases.DIFFERS, cases.LANES_DIFFER)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import oracle as o

Meaning = Callable[..., Any]


@dataclass(frozen=True)
class Vector:
    """A vector instruction. `dst` and `src` are types, and `tolerance` counts units in the last
    place."""

    dst: str
    src: tuple[str, ...]
    meaning: Meaning
    tolerance: int = 0
    accumulates: bool = False
    targets: tuple[str, ...] = ("gfx906", "gfx908", "gfx90a")


VECTOR: dict[str, Vector] = {}
#: Units in the last place, for instructions that the pseudocode gives.
TOLERANCE = {
    **{f"v_{name}_{f}": 1 for name in ("rcp", "sqrt", "rsq") for f in ("f16", "f32", "f64")},
    **{f"v_{name}_{f}": 2 for name in ("exp", "log") for f in ("f16", "f32")},
    "v_rcp_iflag_f32": 1,
}


def tolerance(name: str) -> int:
    """Returns the units in the last place by which a result may differ from the pseudocode."""
    return VECTOR[name].tolerance if name in VECTOR else TOLERANCE.get(name, 0)


def v(name: str, dst: str, src: str, meaning: Meaning, tolerance: int = 0, **more: Any) -> None:
    VECTOR["v_" + name] = Vector(dst, tuple(src.split()), meaning, tolerance, **more)


def rounded(kind: str, value: o.Number) -> float:
    return o.decode(kind, o.encode(kind, value))


def exp2(a: float) -> float:
    return a if a != a else math.inf if a > 1000 else 2.0 ** max(a, -1100.0)


def log2(a: float) -> float:
    return -math.inf if a == 0 else o.NAN if a < 0 else math.log2(a) if a == a else a


def turns(function: Callable[[float], float], beyond: float) -> Meaning:
    """Returns the sine or cosine of a number of turns; the result is `beyond` above 256 turns."""

    def apply(a: float) -> float:
        if not math.isfinite(a):
            return o.NAN
        if abs(a) > 256:
            return beyond
        if a == 0:
            return a if beyond == 0 else 1.0
        quarter = Fraction(a) * 4
        if quarter.denominator == 1:  # multiples of a quarter turn are exact
            n = int(quarter) % 4 + (0 if beyond == 0 else 1)
            return (0.0, 1.0, 0.0, -1.0)[n % 4]
        return function(2 * math.pi * float(Fraction(a) - round(a)))

    return apply


def float_halves(one: Meaning) -> Meaning:
    def apply(*words: int) -> int:
        lo, hi = zip(*(o.parts(w, 16, False) for w in words), strict=True)
        return o.pack(
            *(o.encode("f16", one(*(o.decode("f16", h) for h in side))) for side in (lo, hi))
        )

    return apply


for f in ("f16", "f32", "f64"):
    e = "i16_f16" if f == "f16" else f"i32_{f}"
    v(f"min_{f}", f, f"{f} {f}", o.fmin)
    v(f"max_{f}", f, f"{f} {f}", o.fmax)
    v(f"rndne_{f}", f, f, o.whole(round))
    v(f"fract_{f}", f, f, o.fract(f))
    v(f"frexp_exp_{e}", e[:3], f, o.frexp_exp)
    v(f"ldexp_{f}", f, f"{f} {'i16' if f == 'f16' else 'i32'}", o.ldexp)
for f in ("f16", "f32"):
    v(f"min3_{f}", f, f"{f} {f} {f}", lambda a, b, c: o.fmin(o.fmin(a, b), c))
    v(f"max3_{f}", f, f"{f} {f} {f}", lambda a, b, c: o.fmax(o.fmax(a, b), c))
    v(f"med3_{f}", f, f"{f} {f} {f}", o.med3)
    v(f"sin_{f}", f, f, turns(math.sin, 0.0), 2)
    v(f"cos_{f}", f, f, turns(math.cos, 1.0), 2)
for name, product in (("mad", o.mul), ("mac", o.mul), ("mad_legacy", o.legacy_mul)):
    v(
        f"{name}_f32",
        "f32",
        "f32 f32 f32",
        lambda a, b, c, product=product: o.add(rounded("f32", product(a, b)), c),
        accumulates=name == "mac",
    )
v("exp_legacy_f32", "f32", "f32", exp2, 2)
v("log_legacy_f32", "f32", "f32", log2, 2)
v("pk_min_f16", "pf16", "b32 b32", float_halves(o.fmin))
v("pk_max_f16", "pf16", "b32 b32", float_halves(o.fmax))
v("fma_mix_f32", "f32", "f32 f32 f32", o.fma)
