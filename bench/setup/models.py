"""Builds the models of bench/models as executables, each with the output that NumPy computes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from bench.models import program
from bench.models.program import Variant
from bench.models.zoo import MODELS, Model
from bench.setup import build, native
from mgpu_rt._lowering import cache, toolchain
from tests.support import lower

RELEASES = (19, 22)
FRAME = [native.SOURCES / name for name in ("model.c", "graph.h", "rounds.h", "native.h")]


def executable(model: Model, variant: Variant, llvm: int, chip: str) -> Path:
    """Builds a model in the frame of model.c, linked with the library."""
    result = native.OUT / chip / "models" / f"{model.name}-{variant.name}-{llvm}"
    source = native.OUT / "models" / f"{model.name}-{variant.name}.mlir"
    _write(source, program.source(model, variant).encode())
    try:
        compiled = lower.lower(source, llvm=llvm, chip=chip, first=variant.passes)
    except toolchain.ToolchainMissing:
        if result.exists():
            return result
        raise
    expected = _expected(model)
    if not build.is_newer(result, [compiled, expected, *FRAME]):
        build.link(compiled, result, [f'-DEXPECTED_FILE="{expected}"', FRAME[0]])
    return result


def prepare(chip: str) -> list[Path]:
    """Builds every model in every variant, without debugging information."""
    made = []
    for model in MODELS:
        for variant in program.variants(model):
            for llvm in RELEASES:
                with contextlib.suppress(toolchain.LoweringFailed):  # the measurement reports it
                    made.append(executable(model, variant, llvm, chip))
    build.strip(made)
    return made


def _expected(model: Model) -> Path:
    """Writes a file of the floats that the model's program must compute."""
    sources = [path.read_text() for path in sorted(Path(program.__file__).parent.glob("*.py"))]
    return cache.kept(model.name, ".expected", sources, list, lambda: _computed(model))


def _computed(model: Model) -> bytes:
    from bench.models import reference  # needs NumPy, which carried files do without

    return reference.output(model).astype("float32").tobytes()


def _write(path: Path, content: bytes) -> None:
    """Keeps the modification time of a file whose content is unchanged."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
