"""The code objects of modules; mgpu_rt._lowering caches the code objects under build/objects."""

from __future__ import annotations

from pathlib import Path

from bench import ROOT
from softgpu.tests.kernels.program import Module
from tests.support import lower
from tests.support.folders import write_whole

TEXTS = ROOT / "build" / "kernels"


def text(module: Module) -> Path:
    """Writes the module's MLIR to a file."""
    source = TEXTS / f"{module.name}.mlir"
    write_whole(source, module.text)
    return source


def image(module: Module, chip: str) -> Path:
    """Returns the code object as a file. Raises the exceptions that mgpu_rt._lowering raises."""
    source = text(module)
    options = {"opt_level": module.opt_level, "first": module.first}
    result = TEXTS / f"{module.name}-{chip}.hsaco"
    write_whole(result, lower.code_objects(source, chip, **options)["kernels"])
    return result
