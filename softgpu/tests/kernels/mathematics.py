"""Tests AMD's device library of mathematical functions, to which MLIR lowers the math dialect.

OpenCL defines the error bounds for each type, and the library promises these bounds. The reference
results come from NumPy or the C library, in a wider type.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.inputs import FLOATS
from softgpu.tests.kernels.program import COUNT, Launch, Module, elements, elementwise

libm = ctypes.CDLL(ctypes.util.find_library("m"))
MODULES = {kind: Module(f"math_{kind}") for kind in FLOATS}

Formula = Callable[..., np.ndarray]
# The smallest and the largest argument with which the tests call a function.
Domain = tuple[float, float]


def _of_libm(name: str) -> Formula:
    """Returns a formula that calls the C library's function for long double. The type long double
    has eleven more bits of precision than f64."""
    function = getattr(libm, name)
    function.argtypes, function.restype = [ctypes.c_longdouble], ctypes.c_longdouble

    def apply(values: np.ndarray) -> np.ndarray:
        return np.array([function(v) for v in values.tolist()], np.longdouble)

    return apply


# function name: formula, domain, error bound for f32, error bound for f64
_UNARY: dict[str, tuple[Formula, Domain, float, float]] = {
    "exp": (np.exp, (-100, 88), 3, 3),
    "exp2": (np.exp2, (-140, 127), 3, 3),
    "expm1": (np.expm1, (-20, 80), 3, 3),
    "log": (np.log, (0, 1000), 3, 3),
    "log2": (np.log2, (0, 1000), 3, 3),
    "log10": (np.log10, (0, 1000), 3, 3),
    "log1p": (np.log1p, (-0.999, 100), 2, 2),
    "sin": (np.sin, (-1000, 1000), 4, 4),
    "cos": (np.cos, (-1000, 1000), 4, 4),
    "tan": (np.tan, (-100, 100), 5, 5),
    "asin": (np.arcsin, (-1, 1), 4, 4),
    "acos": (np.arccos, (-1, 1), 4, 4),
    "atan": (np.arctan, (-50, 50), 5, 5),
    "sinh": (np.sinh, (-80, 80), 4, 4),
    "cosh": (np.cosh, (-80, 80), 4, 4),
    "tanh": (np.tanh, (-10, 10), 5, 5),
    "asinh": (np.arcsinh, (-1000, 1000), 4, 4),
    "acosh": (np.arccosh, (1, 1000), 4, 4),
    "atanh": (np.arctanh, (-0.9999, 0.9999), 5, 5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 1e5), 2, 2),
    "cbrt": (np.cbrt, (-1e5, 1e5), 2, 2),
    "erf": (_of_libm("erfl"), (-5, 5), 16, 16),
    "erfc": (_of_libm("erfcl"), (-5, 5), 16, 16),
}
# The f16 sine of rocm-device-libs 5.2.3 mistakes finite numbers for infinite ones and returns NaN.
_LEFT_OUT = {("sin", "f16")}
_HALF_BOUND = 2  # for f16, whose functions the library computes in f32

# f16 overflows at smaller arguments than f32.
_HALF_DOMAINS: dict[str, Domain] = {
    "exp": (-17, 11),
    "exp2": (-24, 15),
    "expm1": (-10, 11),
    "sinh": (-11, 11),
    "cosh": (-11, 11),
    "rsqrt": (0, 60000),
    "cbrt": (-60000, 60000),
    "erfc": (-3, 3),
}


def _tried(rng: np.random.Generator, domain: Domain, dtype: type) -> np.ndarray:
    """Returns random arguments from the domain. About half of the arguments are near zero if the
    domain includes zero."""
    low, high = domain
    values = rng.uniform(low, high, COUNT)
    small = np.exp2(rng.uniform(-12, 0, COUNT)) * rng.choice([-1, 1], COUNT)
    near = rng.random(COUNT) < 0.5
    values = np.where(near & (small > low) & (small < high), small, values)
    return values.astype(dtype)


def _unary(name: str, kind: str) -> Callable[[np.random.Generator], Launch]:
    formula, domain, single, double = _UNARY[name]
    bound = {"f16": _HALF_BOUND, "f32": single, "f64": double}[kind]
    if kind == "f16":
        domain = _HALF_DOMAINS.get(name, domain)

    def data(rng: np.random.Generator) -> Launch:
        values = _tried(rng, domain, FLOATS[kind])
        with np.errstate(all="ignore"):
            expected = formula(values.astype(np.longdouble))
        return elements([values], expected, FLOATS[kind], bound)

    return data


def _binary(
    formula: Formula, first: Domain, second: Domain, bound: float
) -> Callable[[str], Callable[[np.random.Generator], Launch]]:
    def of_kind(kind: str) -> Callable[[np.random.Generator], Launch]:
        def data(rng: np.random.Generator) -> Launch:
            x, y = (_tried(rng, domain, FLOATS[kind]) for domain in (first, second))
            expected = formula(x.astype(np.longdouble), y.astype(np.longdouble))
            return elements([x, y], expected, FLOATS[kind], _HALF_BOUND if kind == "f16" else bound)

        return data

    return of_kind


# The remainder of a division is exact.
_BINARY = {
    "math.powf": _binary(np.power, (0, 8), (-4, 4), 16),
    "math.atan2": _binary(np.arctan2, (-10, 10), (-10, 10), 6),
    "arith.remf": _binary(np.fmod, (-1000, 1000), (-10, 10), 0),
}


def _specials(formula: Formula) -> Callable[[np.random.Generator], Launch]:
    """Returns a function that generates infinities, NaN, zeros and denormals as arguments."""

    def data(rng: np.random.Generator) -> Launch:
        values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
        with np.errstate(all="ignore"):
            return elements([values], formula(values.astype(np.float64)), np.float32, 1)

    return data


for _kind, _module in MODULES.items():
    for _name in _UNARY:
        if (_name, _kind) in _LEFT_OUT:
            continue
        _full = f"{_name}_{_kind}"
        _text = elementwise(_full, [_kind], _kind, f"%r = math.{_name} %a : {_kind}")
        _module.add(_full, _text, _unary(_name, _kind))
        if _kind == "f32" and _name not in ("erf", "erfc"):
            _module.add(f"{_name}_specials", "", _specials(_UNARY[_name][0]), kernel=_full)
    for _operation, _data in _BINARY.items():
        _full = f"{_operation.split('.')[1]}_{_kind}"
        _text = elementwise(_full, [_kind] * 2, _kind, f"%r = {_operation} %a, %b : {_kind}")
        _module.add(_full, _text, _data(_kind))


@MODULES["f64"].program(
    elementwise(
        "large_angles",
        ["f64"],
        "f64",
        """%s = math.sin %a : f64
        %c = math.cos %a : f64
        %r = arith.subf %s, %c : f64""",
    )
)
def large_angles(rng: np.random.Generator) -> Launch:
    """Tests arguments up to 2^1000. The range reduction of such an argument needs hundreds of bits
    of pi. The C library contains enough bits of pi."""
    x = np.exp2(rng.uniform(20, 1000, COUNT))
    launch = elements([x], np.sin(x) - np.cos(x))
    return Launch(
        launch.arguments,
        launch.expected,
        grid=launch.grid,
        block=launch.block,
        ulp=8,
        absolute=2.0**-51,
    )
