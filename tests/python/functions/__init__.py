"""Lowered host functions called from Python on arrays, and arrays that Python hands out."""

from __future__ import annotations

from pathlib import Path

import mgpu_rt

HOST = Path(__file__).with_name("host.mlir")
DEVICE = Path(__file__).with_name("device.mlir")


def library(program: Path, **options: object) -> mgpu_rt.Library:
    """Returns the library of one of these programs."""
    return mgpu_rt.Library(mgpu_rt.lower(program, **options))  # type: ignore[arg-type]
