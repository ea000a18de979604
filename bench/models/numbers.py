"""Pseudo-random numbers: a seed gives equal numbers in Python and in bench/native/model.c."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def numbers(shape: Sequence[int], seed: int, scale: float) -> np.ndarray:
    """Returns float32 numbers between -scale and scale."""
    mixed = np.arange(math.prod(shape), dtype=np.uint64) * 2654435761 + seed * 2246822507
    bits = (mixed & 0xFFFFFFFF).astype(np.uint32)
    bits ^= bits >> 15
    bits *= np.uint32(739982445)
    bits ^= bits >> 12
    bits *= np.uint32(695872825)
    bits ^= bits >> 15
    unit = (bits >> 8).astype(np.float32) / np.float32(1 << 23) - np.float32(1)
    return (unit * np.float32(scale)).reshape(shape)
