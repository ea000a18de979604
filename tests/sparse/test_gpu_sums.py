"""What only cuSPARSE computes: halves. On a machine with an NVIDIA GPU, SciPy and cuSPARSE."""

from __future__ import annotations

import pytest

from tests.support.child import Mgpu, in_child

pytest.importorskip("scipy")

from tests.sparse.sums import spmm, spmv, wrong

ON_A_GPU = {"policies": ("builtin",), "backends": (pytest.param("cuda", marks=pytest.mark.gpu),)}


@in_child(**ON_A_GPU)
def test_halves_times_dense(mgpu: Mgpu) -> None:
    assert list(wrong(spmm, mgpu, *(("csr", type) for type in ("f16", "bf16")))) == []


@in_child(**ON_A_GPU)
def test_halves_times_vector(mgpu: Mgpu) -> None:
    assert list(wrong(spmv, mgpu, *(("csr", type) for type in ("f16", "bf16")))) == []
