"""docs/inspect.md shows what the commands print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

from bench import PROGRAMS
from mgpu_rt.lowering import lower
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND
from tests.support.patience import HANG
from tests.support.programs import STOCK, build

PAGE = (ROOT / "docs" / "inspect.md").read_text(encoding="utf-8")


def example(begin: str) -> tuple[list[str], str]:
    """The words of the command that begins so, and what the page says that it prints."""
    block = PAGE[PAGE.index(f"    $ mgpu-rt {begin}") :]
    shown = []
    for line in block.splitlines():
        if line and not line.startswith("    "):
            break
        shown.append(line)
    command, *output = textwrap.dedent("\n".join(shown)).strip().splitlines()
    return command.split()[2:], "\n".join(output) + "\n"


def printed(words: list[str], folder: Path) -> str:
    env = environment(MGPU_RT_HIP="", MGPU_RT_PYTHON="off", COLUMNS="80")
    result = subprocess.run(
        [COMMAND, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=HANG
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_inspect(tmp_path: Path) -> None:
    shutil.copy(lower.lower(PROGRAMS / "globals.mlir", llvm=22), tmp_path / "globals.o")
    words, shown = example("inspect")
    assert printed(words, tmp_path) == shown


def test_compare(tmp_path: Path) -> None:
    """But for the times, and so the order."""
    shutil.copy(build("forum", 19, 1000, STOCK), tmp_path / "forum")
    words, shown = example("compare")
    assert os.path.basename(words[-1]) == "forum"
    assert counts(printed(words, tmp_path)) == counts(shown)


def counts(text: str) -> list[list[str]]:
    """Names and calls, and the caches whole."""
    calls, caches = re.sub(r"\b\d+\.\d{3}\b", "", text).split("\ncache ")
    return [*sorted(line.split()[:3] for line in calls.splitlines()), caches.split()]
