"""Tests programs from MLIR's sparse compiler: the calls of the lowered code, and the results with
AMD's hipSPARSE."""

from __future__ import annotations

import ctypes.util
import re
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest

from mgpu_rt import _abi
from tests.runtime.sparse.lowered import ELEMENTS, ENCODINGS, TARGETS, lower, program
from tests.support.child import ROOT, environment

LLVM = Path("/usr/lib/llvm-22/lib")
HELPERS = [LLVM / f"libmlir_{name}.so.22.1" for name in ("c_runner_utils", "runner_utils")]
has_hipsparse = pytest.mark.skipif(
    not ctypes.util.find_library("hipsparse"), reason="hipSPARSE is not here: make check-sparse"
)


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize(
    ("op", "form", "calls"),
    [
        ("matmul", "coo", {"mgpuCreateCoo", "mgpuSpMM"}),
        ("matmul", "csr", {"mgpuCreateCsr", "mgpuSpMM"}),
        ("matmul", "csc", {"mgpuCreateCsc", "mgpuSpMM"}),
        ("matvec", "csr", {"mgpuCreateDnVec", "mgpuSpMV"}),
        ("spgemm", "csr", {"mgpuSpGEMMCompute", "mgpuSetCsrPointers"}),
        ("sddmm", "csr", {"mgpuCreateCsr", "mgpuSDDMM"}),
    ],
)
def test_the_library_has_every_lowered_call(
    op: str, form: str, calls: set[str], chip: str, tmp_path: Path
) -> None:
    text = lower(program(op, form, "f32"), tmp_path, chip).read_text()
    called = set(re.findall(r"\bcall @(mgpu\w+)", text))
    assert calls <= called <= {function.name for function in _abi.functions()}


def _run(path: Path) -> np.ndarray:
    """Returns the output of the program on the emulated device."""
    libraries = ",".join(map(str, [ROOT / "build/lib/libmlir_rocm_runtime.so", *HELPERS]))
    command = ["mlir-runner-22", path, "-e", "main", "--entry-point-result=void"]
    done = subprocess.run(
        [*command, f"--shared-libs={libraries}"],
        env=environment("softgpu", MGPU_RT_MANAGER="off"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    return np.array([float(n) for n in re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", done.stdout)])


def _sparse() -> np.ndarray:
    matrix = np.zeros((8, 8))
    for row, column, value in ELEMENTS:
        matrix[row, column] = value
    return matrix


@has_hipsparse
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("form", ENCODINGS)
def test_lowered_sparse_times_dense_is_right(form: str, type: str, tmp_path: Path) -> None:
    """The program multiplies three times, and adds each product to the previous sum."""
    ramp = np.add.outer(np.arange(8.0), np.arange(8.0))
    got = _run(lower(program("matmul", form, type, times=3), tmp_path))
    assert got.reshape(8, 8).tolist() == (ramp + 3 * (_sparse() @ ramp)).tolist()


@has_hipsparse
@pytest.mark.parametrize("form", ["coo", "csr"])
def test_lowered_sparse_times_vector_is_right(form: str, tmp_path: Path) -> None:
    ramp = 2 * np.arange(8.0)
    got = _run(lower(program("matvec", form, "f64"), tmp_path))
    assert got.tolist() == (ramp + _sparse() @ ramp).tolist()


@has_hipsparse
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_lowered_sparse_times_sparse_is_right(type: str, tmp_path: Path) -> None:
    got = _run(lower(program("spgemm", "csr", type), tmp_path))
    assert got.reshape(8, 8).tolist() == (_sparse() @ _sparse()).tolist()


@has_hipsparse
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_lowered_dense_times_dense_is_right_where_the_sparse_one_has_elements(
    type: str, tmp_path: Path
) -> None:
    ramp = np.add.outer(np.arange(8.0), np.arange(8.0))
    got = _run(lower(program("sddmm", "csr", type), tmp_path))
    sparse = _sparse()
    assert got.reshape(8, 8).tolist() == np.where(sparse, sparse + ramp @ ramp, 0).tolist()


@has_hipsparse
def test_the_documents_example_prints_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", (ROOT / "docs/sparse.md").read_text(), re.MULTILINE)
    code = next(block for block in blocks if "module {" in block)
    said = next(block for block in blocks if "( ( " in block)
    got = _run(lower(textwrap.dedent(code), tmp_path))
    assert got.tolist() == [float(word) for word in re.findall(r"\d+", said)]
