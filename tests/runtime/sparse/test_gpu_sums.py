"""Tests products that only NVIDIA's libraries compute: products of halves, products in blocks, and
products with a 2:4 matrix. The tests need a machine with an NVIDIA GPU, SciPy, cuSPARSE and
cuSPARSELt."""

from __future__ import annotations

import importlib.util

import pytest

from tests.support.child import Mgpu, in_child

pytest.importorskip("scipy")

from tests.runtime.sparse.sums import Device, hold, sddmm_blocks, spmm, spmv, two_to_four

ON_A_GPU = {"policies": ("builtin",), "backends": (pytest.param("cuda", marks=pytest.mark.gpu),)}


def _cusparselt() -> str:
    """Returns the folder of the cuSPARSELt that is installed with PyTorch; "" if the loader must
    find cuSPARSELt."""
    found = importlib.util.find_spec("nvidia")
    folders = found.submodule_search_locations if found else ()
    return ":".join(f"{folder}/cusparselt/lib" for folder in folders or ())


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


@in_child(LD_LIBRARY_PATH=_cusparselt(), **ON_A_GPU)
def test_2_to_4_matrices_times_dense_are_right(mgpu: Mgpu) -> None:
    """A has 16 rows, as in LLVM's own tests, or more rows. A already has the 2:4 pattern, or the
    library prunes A."""
    mgpu.CreateSparseLtEnv()
    device = Device(mgpu)
    for shape in ((16, 32, 16), (64, 128, 32), (256, 64, 512)):
        for prune in (0, 1, 2):
            assert two_to_four(device, *shape, prune) == 0, (shape, prune)
    mgpu.DestroySparseLtEnv()
    said = mgpu.stderr()
    assert said == "", said
