"""Code objects of modules, kept under build/objects by mgpu_rt.lowering."""

from __future__ import annotations

from pathlib import Path

from bench import ROOT
from mgpu_rt.lowering import lower
from tests.softgpu.kernels.program import Module

TEXTS = ROOT / "build" / "kernels"


def text(module: Module) -> Path:
    """The module's MLIR as a file."""
    TEXTS.mkdir(parents=True, exist_ok=True)
    source = TEXTS / f"{module.name}.mlir"
    if not source.exists() or source.read_text() != module.text:
        source.write_text(module.text)
    return source


def image(module: Module, chip: str) -> Path:
    """The code object as a file. Raises what mgpu_rt.lowering raises."""
    source = text(module)
    options = {"opt_level": module.opt_level, "first": module.first}
    result = TEXTS / f"{module.name}-{chip}.hsaco"
    result.write_bytes(lower.code_objects(source, chip, **options)["kernels"])
    return result
