"""Tests the output, the calls and the kernel of the program saxpy from Python. The tests run
without a GPU, as docs/ci.md describes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import mgpu_rt
from mgpu_rt import In, MemRef

SOURCE = Path(__file__).parents[1] / "saxpy.mlir"


def lower(mgpu, out: Path, *options: str) -> Path:
    """Lowers the program for the test session's device."""
    chip = ["--chip", mgpu.chip] if mgpu.chip else []
    subprocess.run(["mgpu-rt", "lower", *chip, *options, SOURCE, "-o", out], check=True)
    return out


def test_the_program_prints_the_last_number(mgpu, tmp_path):
    words = ("--emit", "executable")
    ended = mgpu.run(lower(mgpu, tmp_path / "saxpy", *words))
    assert ended.stdout == "511\n"
    assert ended.launches == {"saxpy": 1}
    assert ended.calls["mgpuMemcpy"] == 3


@pytest.mark.mgpu
def test_the_kernel_takes_arrays(mgpu, tmp_path):
    kernels = mgpu_rt.Module(lower(mgpu, tmp_path / "saxpy.o"))
    x, y = np.arange(256, dtype=np.float32), mgpu_rt.to_device(np.ones(256, dtype=np.float32))
    kernels["saxpy"](1, 256, MemRef(In(mgpu_rt.to_device(x))), MemRef(y))
    assert (y.to_host() == 2 * x + 1).all()
