"""Measures which of HIP's functions wait for a kernel that waits for the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mgpu_rt._lowering import lower
from tests.support.patience import HANG

HERE = Path(__file__).parent

#: The only question that delays work. This question makes the null stream wait for the kernels of
#: all other streams. All other streams then wait for the null stream.
DELAYING = {"stream:null:hipStreamQuery"}


def image(folder: Path) -> Path:
    """Writes the code object of kernels.mlir."""
    out = folder / "kernels.co"
    out.write_bytes(lower.code_object(HERE / "kernels.mlir", "gfx90a"))
    return out


def compiled(folder: Path, program: str) -> Path:
    """Compiles a program of this folder."""
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    command = ["cc", *flags, str(HERE / f"{program}.c"), "-ldl", "-o", str(folder / program)]
    subprocess.run(command, check=True, timeout=HANG)
    return folder / program


def words(folder: Path, hip: Path) -> list[object]:
    """Returns the command that asks HIP all questions."""
    patience = 1000 * HANG
    program = compiled(folder, "questions")
    return [program, hip, image(folder), patience, "questions", *sorted(DELAYING)]


def delaying(printed: str) -> set[str]:
    """Returns the questions that waited or delayed other work, as "situation:call"."""
    lines = printed.splitlines()
    assert lines[-1] == "done", printed
    rows = [line.split() for line in lines[:-1]]
    assert len(rows) > 200
    return {call for call, does in rows if does != "returns"}
