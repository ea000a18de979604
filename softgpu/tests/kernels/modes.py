"""The mode register selects one of four roundings, and selects whether the arithmetic keeps
denormals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from softgpu.tests.kernels.inputs import FLOATS, any_floats
from softgpu.tests.kernels.program import COUNT, Launch, Module, elements, elementwise

MODULE = Module("modes")

#: the numbers of the rounding modes in C's FLT_ROUNDS
MODES = {"zero": 0, "nearest": 1, "up": 2, "down": 3}


def _rounded(exact: Fraction, mode: str, dtype: type) -> np.floating:
    """Rounds an exact number to ``dtype`` in a rounding mode, and returns the rounded number. The
    number must lie within the type's range."""
    near = dtype(float(exact))  # at most one step off, in either direction
    low = near if Fraction(float(near)) <= exact else np.nextafter(near, dtype(-np.inf))
    high = near if Fraction(float(near)) >= exact else np.nextafter(near, dtype(np.inf))
    below, above = exact - Fraction(float(low)), Fraction(float(high)) - exact
    if mode == "nearest":
        if below == above:
            even = int(low.view(f"u{low.itemsize}")) % 2 == 0
            return low if even else high
        return low if below < above else high
    if mode == "zero":
        return low if exact >= 0 else high
    return high if mode == "up" else low


_OPERATIONS: dict[str, tuple[str, str, Callable[..., Fraction]]] = {
    "add": ("%r = arith.addf %x, %y : {t}", "{t}", lambda a, b: a + b),
    "mul": ("%r = arith.mulf %x, %y : {t}", "{t}", lambda a, b: a * b),
    "fma": ("%r = math.fma %x, %y, %x : {t}", "{t}", lambda a, b: a * b + a),
    "narrow": ("%p = arith.truncf %x : {t} to {n}\n%r = arith.extf %p : {n} to {t}", "{n}",
               lambda a, b: a),
}  # fmt: skip
_NARROWER = {"f64": "f32", "f32": "f16"}


def _text(name: str, kind: str, body: str) -> str:
    """The kernel sets the rounding mode before the arithmetic."""
    return elementwise(
        name,
        [kind, kind, "i32"],
        kind,
        f"""%first = arith.constant 0 : index
        %mode = memref.load %mc[%first] : memref<?xi32>
        llvm.call_intrinsic "llvm.set.rounding"(%mode) : (i32) -> ()
        %x = memref.load %ma[%i] : memref<?x{kind}>
        %y = memref.load %mb[%i] : memref<?x{kind}>
        {body}""",
    )


def _data(kind: str, target: str, mode: str, formula: Callable[..., Fraction]) -> Callable:
    def data(rng: np.random.Generator) -> Launch:
        dtype, narrow = FLOATS[kind], FLOATS[target]
        # About a quarter of the results are denormal numbers of the narrower type.
        info = np.finfo(narrow)
        tiny = float(info.tiny) ** 0.5
        scale = np.where(rng.random(COUNT) < 0.25, tiny, 1)
        a, b = ((rng.normal(size=COUNT) * scale).astype(dtype) for _ in range(2))
        if narrow is not dtype:
            a = (rng.normal(size=COUNT) * np.where(scale == 1, 1, float(info.tiny))).astype(dtype)
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        exact = [formula(Fraction(x), Fraction(y)) for x, y in pairs]
        expected = np.array([_rounded(e, mode, narrow) for e in exact], narrow).astype(dtype)
        modes = np.full(COUNT, MODES[mode], np.int32)
        return elements([a, b, modes], expected)

    return data


for _kind in ("f32", "f64"):
    for _operation, (_body, _target, _formula) in _OPERATIONS.items():
        _narrow = _NARROWER[_kind]
        for _mode in MODES:
            _kernel = f"{_operation}_{_kind}"
            MODULE.add(
                f"{_kernel}_{_mode}",
                _text(_kernel, _kind, _body.format(t=_kind, n=_narrow)) if _mode == "zero" else "",
                _data(_kind, _target.format(t=_kind, n=_narrow), _mode, _formula),
                kernel=_kernel,
            )


# ---- denormals -----------------------------------------------------------------------------------


def _flushed(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, np.copysign(0, values), values)


def _without_denormals(kind: str, formula: Callable) -> Callable:
    def data(rng: np.random.Generator) -> Launch:
        dtype = FLOATS[kind]
        tiny = np.finfo(dtype).tiny
        a, b = (any_floats(rng, dtype, COUNT) for _ in range(2))
        near = rng.random(COUNT) < 0.5
        a = np.where(near, (rng.normal(size=COUNT) * float(tiny)).astype(dtype), a)
        with np.errstate(all="ignore"):
            result = formula(_flushed(a), _flushed(b)).astype(dtype)
        return elements([a, b], _flushed(result))

    return data


for _kind, _attribute in (
    ("f16", "denormal-fp-math"),
    ("f32", "denormal-fp-math-f32"),
    ("f64", "denormal-fp-math"),
):
    for _operation, _formula in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        _name = f"flushed_{_operation}_{_kind}"
        _plain = elementwise(
            _name, [_kind] * 2, _kind, f"%r = arith.{_operation}f %a, %b : {_kind}"
        )
        _flushing = f'passthrough = [["{_attribute}", "preserve-sign,preserve-sign"]]'
        MODULE.add(
            _name,
            _plain.replace(" kernel {", f" kernel attributes {{{_flushing}}} {{"),
            _without_denormals(_kind, _formula),
        )
