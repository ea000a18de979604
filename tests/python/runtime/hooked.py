"""Programs for hooks, and the recordings of their launches."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.setup.printing import print_library
from mgpu_rt._cli import softgpu
from mgpu_rt._lowering import lower, object_files
from tests.support.child import library
from tests.support.command import command
from tests.support.folders import folder

HERE = Path(__file__).parent


@functools.cache
def program(
    source: Path = HERE / "nan.mlir", iterations: int | None = None, *, lines: bool = False
) -> Path:
    """Builds a program, linked with the library."""
    parts = [library(), print_library()]
    return object_files.link(
        [lower.lower(source, llvm=22, iterations=iterations, lines=lines)],
        libraries=parts,
        rpath=[part.parent for part in parts],
        out=folder("hooks") / (f"{source.stem}-g" if lines else source.stem),
    )


def hip() -> dict[str, str]:
    return {"MGPU_RT_HIP": str(softgpu.hip({})), "MGPU_RT_MANAGER": "off"}


def replay(*words: object) -> subprocess.CompletedProcess[str]:
    return command("replay", "--device", "softgpu", *words, **hip())


def launches_of(recording: Path) -> list[dict[str, Any]]:
    """Returns the launches in a manifest, parsed from JSON."""
    lines = (recording / "manifest.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def write_launches(recording: Path, launches: list[Any]) -> None:
    """Writes a manifest with these values, valid or invalid."""
    lines = [json.dumps(launch) + "\n" for launch in launches]
    (recording / "manifest.jsonl").write_text("".join(lines))


def changed(recording: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Returns a copy of a recording with its first launch changed."""
    shutil.copytree(recording, to)
    launches = launches_of(to)
    change(launches[0])
    write_launches(to, launches)
    return to
