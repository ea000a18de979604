"""Tests calls from Python to lowered host functions on arrays, and tests the arrays that Python
exports."""

from __future__ import annotations

from pathlib import Path

import mgpu_rt

HOST = Path(__file__).with_name("host.mlir")
DEVICE = Path(__file__).with_name("device.mlir")


def library(program: Path, **options: object) -> mgpu_rt.Library:
    """Returns the compiled library of the given program."""
    return mgpu_rt.Library(mgpu_rt.lower(program, **options))  # type: ignore[arg-type]
