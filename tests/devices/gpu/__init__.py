"""Programs for tests on NVIDIA's GPU, and their lowering."""

from __future__ import annotations

from pathlib import Path

from tests.support import lower

CHIP = "sm_90"
KERNELS = Path(__file__).resolve().parent / "kernels.mlir"
TENSORMAP = KERNELS.with_name("tensormap.mlir")

_TENSORMAP_PASSES = (
    "convert-nvgpu-to-nvvm,gpu-kernel-outlining,convert-scf-to-cf,convert-nvvm-to-llvm"
)


def tensormap(image: str) -> Path:
    """Returns the lowered program that uses the tensor memory accelerator."""
    return lower.lower(TENSORMAP, llvm=22, chip=CHIP, image=image, first=_TENSORMAP_PASSES)
