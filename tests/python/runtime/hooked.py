"""Programs for hooks, and the recordings of their launches."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mgpu_rt._cli import softgpu
from mgpu_rt.runtime import Launch, Runtime
from tests.support import lower
from tests.support.child import library
from tests.support.command import command
from tests.support.folders import folder
from tests.support.printing import print_library

HERE = Path(__file__).parent


@functools.cache
def program(
    source: Path = HERE / "nan.mlir", iterations: int | None = None, *, lines: bool = False
) -> Path:
    """Builds a program, linked with the library."""
    parts = [library(), print_library()]
    return lower.link(
        [lower.lower(source, llvm=22, iterations=iterations, lines=lines)],
        libraries=parts,
        rpath=[part.parent for part in parts],
        out=folder("hooks") / (f"{source.stem}-g" if lines else source.stem),
    )


def hip() -> dict[str, str]:
    return {"MGPU_RT_HIP": str(softgpu.hip({})), "MGPU_RT_MANAGER": "off"}


def launch_on(runtime: Runtime, function: int, params: int = 0) -> Launch:
    """Returns a launch of one thread, as the library makes it for a program's call."""
    launch = Launch.__new__(Launch)
    launch.runtime, launch.number = runtime, 0
    launch._c.function, launch._c.params = function, params
    launch._c.grid = launch._c.block = (1, 1, 1)
    return launch


def replay(*words: object) -> subprocess.CompletedProcess[str]:
    return command("replay", "--device", "softgpu", *words, **hip())


def folders_of(recording: Path) -> list[Path]:
    """Returns the folders of the launches, in order."""
    return sorted(path.parent for path in recording.glob("[!.]*/launch.json"))


def launches_of(recording: Path) -> list[dict[str, Any]]:
    """Returns the launches of a recording, parsed from JSON."""
    return [json.loads((f / "launch.json").read_bytes()) for f in folders_of(recording)]


def write_launches(recording: Path, launches: list[Any]) -> None:
    """Writes these values, or bytes, into the folders of the launches. Adds and removes folders at
    the end."""
    folders = folders_of(recording)
    for number in range(len(folders), len(launches)):
        folders.append(recording / f"9{number}")
        folders[-1].mkdir()
    for path in folders[len(launches) :]:
        shutil.rmtree(path)
    for path, launch in zip(folders, launches, strict=False):
        content = launch if isinstance(launch, bytes) else json.dumps(launch).encode()
        (path / "launch.json").write_bytes(content)


def changed(recording: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Returns a copy of a recording with its first launch changed."""
    shutil.copytree(recording, to)
    launches = launches_of(to)
    change(launches[0])
    write_launches(to, launches)
    return to
