"""Conversions between all types, rounded exactly as in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.compare import bf16, from_bf16
from softgpu.tests.kernels.inputs import FLOATS, INTEGERS, UNSIGNED, any_floats, any_integers
from softgpu.tests.kernels.program import COUNT, Launch, Module, elements, elementwise

MODULE = Module("casts", single=True)

Data = Callable[[np.random.Generator], Launch]


def _add(operation: str, source: str, target: str, data: Data) -> None:
    name = f"{operation}_{source}_{target}"
    body = f"%r = arith.{operation} %a : {source} to {target}"
    MODULE.add(name, elementwise(name, [source], target, body), data)


def _from_integer(source: str, target: str, signed: bool) -> Data:
    def data(rng: np.random.Generator) -> Launch:
        values = any_integers(rng, INTEGERS[source], COUNT)
        exact = values if signed else values.view(UNSIGNED[source])
        with np.errstate(over="ignore"):
            if target == "f16":  # NumPy would go through f32 for wide ones; f64 rounds once here
                largest = 2**20  # exact in f64, and beyond f16's largest number, 65504
                exact = np.clip(exact, -largest if signed else 0, largest).astype(np.float64)
            return elements([values], exact.astype(FLOATS[target]))

    return data


def _to_integer(source: str, target: str, signed: bool) -> Data:
    """Returns values that fit the target type; for other values the result is undefined."""

    def data(rng: np.random.Generator) -> Launch:
        kind = (INTEGERS if signed else UNSIGNED)[target]
        info, dtype = np.iinfo(kind), FLOATS[source]
        values = any_integers(rng, INTEGERS[target], COUNT).view(kind).astype(np.float64)
        with np.errstate(over="ignore"):
            values = (values * rng.random(COUNT)).astype(dtype)
            low = np.nextafter(dtype(max(info.min, np.finfo(dtype).min)), dtype(0))
            high = np.nextafter(dtype(min(info.max, np.finfo(dtype).max)), dtype(0))
        values = np.clip(values, low if info.min else dtype(0), high)
        return elements([values], values.astype(kind).view(INTEGERS[target]))

    return data


def _between_floats(source: str, target: str) -> Data:
    def data(rng: np.random.Generator) -> Launch:
        values = any_floats(rng, FLOATS[source], COUNT)
        with np.errstate(over="ignore"):
            return elements([values], values.astype(FLOATS[target]))

    return data


def _between_integers(source: str, target: str, signed: bool) -> Data:
    def data(rng: np.random.Generator) -> Launch:
        values = any_integers(rng, INTEGERS[source], COUNT)
        exact = values if signed else values.view(UNSIGNED[source])
        return elements([values], exact.astype(INTEGERS[target]))

    return data


for _i in INTEGERS:
    for _f in FLOATS:
        _add("sitofp", _i, _f, _from_integer(_i, _f, True))
        _add("uitofp", _i, _f, _from_integer(_i, _f, False))
        _add("fptosi", _f, _i, _to_integer(_f, _i, True))
        _add("fptoui", _f, _i, _to_integer(_f, _i, False))
    for _j in INTEGERS:
        if int(_i[1:]) < int(_j[1:]):
            _add("extsi", _i, _j, _between_integers(_i, _j, True))
            _add("extui", _i, _j, _between_integers(_i, _j, False))
            _add("trunci", _j, _i, _between_integers(_j, _i, True))

for _narrow, _wide in (("f16", "f32"), ("f16", "f64"), ("f32", "f64")):
    _add("extf", _narrow, _wide, _between_floats(_narrow, _wide))
    _add("truncf", _wide, _narrow, _between_floats(_wide, _narrow))


@MODULE.program(elementwise("f32_to_bf16", ["f32"], "bf16", "%r = arith.truncf %a : f32 to bf16"))
def f32_to_bf16(rng: np.random.Generator) -> Launch:
    values = any_floats(rng, np.float32, COUNT)
    values = np.where(np.isnan(values), np.float32(1), values)
    return elements([values], bf16(values))


@MODULE.program(elementwise("bf16_to_f32", ["bf16"], "f32", "%r = arith.extf %a : bf16 to f32"))
def bf16_to_f32(rng: np.random.Generator) -> Launch:
    values = bf16(any_floats(rng, np.float32, COUNT))
    return elements([values], from_bf16(values))


@MODULE.program(
    elementwise(
        "same_bits",
        ["f64"],
        "i64",
        """%raw = arith.bitcast %a : f64 to i64
        %low = arith.trunci %raw : i64 to i32
        %f = arith.bitcast %low : i32 to f32
        %back = arith.bitcast %f : f32 to i32
        %half = arith.trunci %back : i32 to i16
        %h = arith.bitcast %half : i16 to f16
        %again = arith.bitcast %h : f16 to i16
        %w = arith.extui %again : i16 to i64
        %r = arith.xori %raw, %w : i64""",
    )
)
def same_bits(rng: np.random.Generator) -> Launch:
    values = any_floats(rng, np.float64, COUNT)
    raw = values.view(np.int64)
    return elements([values], raw ^ (raw & 0xFFFF))


@MODULE.program(
    elementwise(
        "through_index",
        ["i32"],
        "i64",
        """%s = arith.index_cast %a : i32 to index
        %u = arith.index_castui %a : i32 to index
        %x = arith.xori %s, %u : index
        %r = arith.index_cast %x : index to i64""",
    )
)
def through_index(rng: np.random.Generator) -> Launch:
    values = any_integers(rng, np.int32, COUNT)
    return elements([values], values.astype(np.int64) ^ values.view(np.uint32).astype(np.int64))
