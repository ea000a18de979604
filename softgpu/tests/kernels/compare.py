"""Compares results with expected results within an error bound, and describes the first
difference."""

from __future__ import annotations

import numpy as np


def mismatch(got: np.ndarray, expected: np.ndarray, ulp: float, absolute: float = 0) -> str | None:
    """Returns None if the arrays agree, or describes the first difference.

    With an error bound, ``expected`` may have a wider type than ``got``. The distance is measured
    in units in the last place of ``got``'s type, before ``expected`` is rounded to this type.
    """
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    if got.dtype.kind != "f":
        wrong = got != expected
        distance = None
    elif ulp == 0 and absolute == 0:
        wrong = bits(got) != bits(expected.astype(got.dtype))
        wrong &= ~(np.isnan(got) & np.isnan(expected))
        distance = None
    else:
        distance = distance_in_ulp(got, expected)
        wrong = ~(distance <= ulp)
        if absolute:
            with np.errstate(invalid="ignore"):
                wrong &= ~(np.abs(got.astype(np.longdouble) - expected) <= absolute)
    if not wrong.any():
        return None
    where = tuple(int(n) for n in np.argwhere(wrong)[0])
    text = f"{int(wrong.sum())} of {got.size} wrong; at {where}: got {got[where]!r}"
    text += f", expected {expected[where]!r}"
    if distance is not None:
        text += f"; {float(distance[where]):.3g} ulp, worst {float(np.max(distance)):.3g}"
    return text


def bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def distance_in_ulp(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Returns |got - expected| in units in the last place; the result is 0 for two NaNs or equal
    infinities."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(got.dtype)
        unit = np.spacing(np.abs(rounded)).astype(np.longdouble)
        distance = np.abs(got.astype(np.longdouble) - expected) / unit
    same = (got == rounded) & ~np.isfinite(rounded)
    return np.where(same | (np.isnan(got) & np.isnan(rounded)), 0, distance)


def bf16(values: np.ndarray) -> np.ndarray:
    """Converts f32 values to bf16 bits, rounded to nearest even; all NaNs become the quiet NaN."""
    raw = values.astype(np.float32).view(np.uint32)
    rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def from_bf16(values: np.ndarray) -> np.ndarray:
    """Converts bf16 bits to f32 values, exactly."""
    return (values.astype(np.uint32) << 16).view(np.float32)
