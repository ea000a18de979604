"""Products of sparse matrices by AMD's own hipSPARSE, on the emulated device, compared with SciPy's
products.

make check-sparse installs hipSPARSE (1.3 GB) and SciPy; if either is missing, pytest skips the
emulated tests. With -m gpu, cuSPARSE computes the products, on a machine with an NVIDIA GPU. Only
cuSPARSE computes products of halves, and products in blocks."""

from __future__ import annotations

import ctypes.util
import os
from pathlib import Path

import pytest

from tests.support.child import Mgpu, in_child

has_hipsparse = pytest.mark.skipif(
    not ctypes.util.find_library("hipsparse"), reason="hipSPARSE is not here: make check-sparse"
)
pytest.importorskip("scipy")

from tests.runtime.sparse.sums import (  # noqa: E402
    FORMATS,
    hold,
    sddmm,
    sddmm_blocks,
    spgemm,
    spmm,
    spmv,
)

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
ON_A_GPU = {"policies": ("builtin",), "backends": (CUDA,)}
ON_A_LIBRARY = {**ON_A_GPU, "backends": (pytest.param("softgpu", marks=has_hipsparse), CUDA)}
PLAIN = ("f32", "f64")
COMPLEX = ("c32", "c64")


def _by_columns(*forms: str) -> list[str]:
    """Returns the formats of matrices that a product with a vector reads column by column.
    hipSPARSE of ROCm 7 lacks such products; with ROCm 7 the result is empty."""
    hip = Path(os.environ["MGPU_RT_HIP"]).resolve().name
    return [] if hip.startswith("libamdhip64.so.7") else [*forms]


@in_child(**ON_A_LIBRARY)
def test_sparse_times_vector_is_right(mgpu: Mgpu) -> None:
    forms = ["coo", "csr", *_by_columns("csc")]
    hold(spmv, mgpu, *((form, type) for form in forms for type in (*PLAIN, *COMPLEX)))


@in_child(**ON_A_LIBRARY)
def test_transposed_sparse_times_vector_is_right(mgpu: Mgpu) -> None:
    hold(spmv, mgpu, *((form, "f32", True) for form in ["coo", *_by_columns("csr")]))


@in_child(**ON_A_LIBRARY)
def test_sparse_times_dense_is_right(mgpu: Mgpu) -> None:
    cases = [(form, type) for form in FORMATS for type in PLAIN]
    hold(spmm, mgpu, *cases)


@in_child(**ON_A_LIBRARY)
def test_complex_sparse_times_dense_is_right(mgpu: Mgpu) -> None:
    hold(spmm, mgpu, *((form, "c32") for form in FORMATS))


@in_child(**ON_A_LIBRARY)
def test_sparse_times_dense_with_64_bit_indices_is_right(mgpu: Mgpu) -> None:
    import numpy as np

    hold(spmm, mgpu, *((form, "f32", np.int64) for form in ("coo", "csr")))


@in_child(**ON_A_LIBRARY)
def test_dense_times_dense_is_right_where_the_sparse_one_has_elements(mgpu: Mgpu) -> None:
    hold(sddmm, mgpu, *(("csr", type) for type in PLAIN))


@in_child(**ON_A_LIBRARY)
def test_sparse_times_sparse_is_right(mgpu: Mgpu) -> None:
    hold(spgemm, mgpu, *(("csr", type) for type in PLAIN))


@in_child(**ON_A_GPU)
def test_products_of_halves_are_right(mgpu: Mgpu) -> None:
    halves = [("csr", type) for type in ("f16", "bf16")]
    hold(spmm, mgpu, *halves)
    hold(spmv, mgpu, *halves)


@in_child(**ON_A_GPU)
def test_dense_times_dense_in_sparse_blocks_is_right(mgpu: Mgpu) -> None:
    cases = ((block, type) for block in (2, 8, 16) for type in ("f32", "f64"))
    hold(sddmm_blocks, mgpu, *cases)
