"""Tests products that only NVIDIA's libraries compute: products of halves, and products in
blocks. The tests need a machine with an NVIDIA GPU, SciPy and cuSPARSE."""

from __future__ import annotations

import pytest

from tests.support.child import Mgpu, in_child

pytest.importorskip("scipy")

from tests.runtime.sparse.sums import hold, sddmm_blocks, spmm, spmv

ON_A_GPU = {"policies": ("builtin",), "backends": (pytest.param("cuda", marks=pytest.mark.gpu),)}


@in_child(**ON_A_GPU)
def test_sparse_halves_times_dense_is_right(mgpu: Mgpu) -> None:
    hold(spmm, mgpu, *(("csr", type) for type in ("f16", "bf16")))


@in_child(**ON_A_GPU)
def test_sparse_halves_times_vector_is_right(mgpu: Mgpu) -> None:
    hold(spmv, mgpu, *(("csr", type) for type in ("f16", "bf16")))


@in_child(**ON_A_GPU)
def test_dense_times_dense_in_sparse_blocks_is_right(mgpu: Mgpu) -> None:
    cases = ((block, type) for block in (2, 8, 16) for type in ("f32", "f64"))
    hold(sddmm_blocks, mgpu, *cases)
