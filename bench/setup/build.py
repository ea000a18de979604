"""Builds executables of lowered programs.

The executables can be carried to a machine without MLIR (``python -m bench prepare``).
The executables find the library by a path relative to their own folder. If MLIR's tools are
missing, existing executables are used unchanged.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench import PROGRAMS
from bench.setup import native
from mgpu_rt._lowering import toolchain
from tests.support import lower

#: Number of launches in the graph of the forum's program.
IN_A_GRAPH = 50

#: The sources of the frames around a lowered program.
FRAME = [native.SOURCES / name for name in ("lowered.c", "graph.h", "rounds.h", "native.h")]


def executable(
    program: str, llvm: int, chip: str, iterations: int | None, folder: Path = PROGRAMS
) -> Path:
    """Builds a program of a folder in the frame of lowered.c, linked with the library."""
    result = native.OUT / chip / f"{program}-{llvm}-{iterations or 'all'}"
    source = folder / f"{program}.mlir"
    try:
        compiled = lower.lower(source, llvm=llvm, chip=chip, iterations=iterations)
    except toolchain.ToolchainMissing:
        if result.exists():
            return result
        raise
    if not is_newer(result, [compiled, *FRAME]):
        link(compiled, result)
    return result


def is_newer(result: Path, inputs: Iterable[Path]) -> bool:
    """Returns whether a result exists and is not older than its sources."""
    newest = max(path.stat().st_mtime for path in inputs)
    return result.exists() and result.stat().st_mtime >= newest


def link(compiled: Path, result: Path, frame: Sequence[object] = (FRAME[0],)) -> None:
    """Renames the main of a program, and links the program with a frame. The frame consists of
    source files and compiler options."""
    result.parent.mkdir(parents=True, exist_ok=True)
    renamed = result.with_name(f"{result.name}.{os.getpid()}.o")
    try:
        native.run([_objcopy(), "--redefine-sym", "main=lowered_main", compiled, renamed])
        # The search path is relative, so that the build folder can be moved.
        search = os.path.relpath(native.RUNTIME.parent, result.parent)
        arguments = [*native.FLAGS, *frame, renamed, native.RUNTIME, "-ldl", "-lm"]
        native.compile_c([*arguments, f"-Wl,-rpath,$ORIGIN/{search}"], result)
    finally:
        renamed.unlink(missing_ok=True)


def _objcopy() -> str:
    found = shutil.which("objcopy")
    if found is None:
        raise toolchain.ToolchainMissing("objcopy", "binutils")
    return found


def prepare(chip: str, programs: Iterable[str], iterations: Mapping[str, int]) -> list[Path]:
    """Builds all files for runs on a chip, without debugging information."""
    made = [native.program(name, chip) for name in native.MEASURING]
    for program in programs:
        # The forum's program has two more versions: a version with a single launch, and a version
        # with the launches of the measured graph.
        for count in {iterations.get(program), *([1, IN_A_GRAPH] if program == "forum" else [])}:
            for llvm in (19, 22):
                made.append(executable(program, llvm, chip, count))
        native.image(chip, program)
    strip(made)
    return made


def strip(paths: Iterable[Path]) -> None:
    """Removes the debugging information."""
    for path in paths:
        native.run([_objcopy(), "--strip-debug", path])
