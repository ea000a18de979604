"""Programs that hooks look at, and the recordings of their launches."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from bench.setup.printing import print_library
from mgpu_rt.cli import softgpu
from mgpu_rt.lowering import lower, object_files
from tests.support.child import library
from tests.support.command import command
from tests.support.folders import folder

HERE = Path(__file__).parent


@functools.cache
def program(source: Path = HERE / "nan.mlir", iterations: int | None = None) -> Path:
    """Linked with the library."""
    parts = [library(), print_library()]
    return object_files.link(
        [lower.lower(source, llvm=22, iterations=iterations)],
        libraries=parts,
        rpath=[part.parent for part in parts],
        out=folder("hooks") / source.stem,
    )


def hip() -> dict[str, str]:
    return {"MGPU_RT_HIP": str(softgpu.hip({})), "MGPU_RT_PYTHON": "off"}


def replay(*words: object) -> subprocess.CompletedProcess[str]:
    return command("replay", "--device", "softgpu", *words, **hip())
