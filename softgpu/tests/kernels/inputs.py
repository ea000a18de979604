"""Random inputs that contain every class of values of a type."""

from __future__ import annotations

import numpy as np

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def special_floats(dtype: type) -> np.ndarray:
    info = np.finfo(dtype)
    values = [0.0, 0.5, 1.0, 1.5, 2.5, info.tiny, info.smallest_subnormal, info.eps, info.max]
    values += [info.tiny - info.smallest_subnormal, np.inf]
    return np.array([*values, *(-v for v in values), np.nan], dtype)


def any_floats(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    """Returns random bits, values near 1, and special values, in random order."""
    raw = rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    values = np.where(rng.random(count) < 0.5, raw, rng.normal(0, 4, count).astype(dtype))
    special = special_floats(dtype)
    chosen = rng.random(count) < 0.2
    values[chosen] = rng.choice(special, int(chosen.sum()))
    values[np.isnan(values)] = np.nan
    return values


def any_integers(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    """Returns random bits, small values, and limits of `dtype` and of narrower types."""
    raw = rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    values = raw >> rng.integers(0, 8 * np.dtype(dtype).itemsize, count).astype(dtype)
    values = np.where(rng.random(count) < 0.3, raw, values)
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2]
    ends += [e & info.max for e in (0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)]
    chosen = rng.random(count) < 0.2
    values[chosen] = rng.choice(np.array(ends, dtype), int(chosen.sum()))
    return values
