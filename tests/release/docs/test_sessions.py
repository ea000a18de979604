"""Runs the terminal sessions of the pages on the emulated device. Each command prints the output
that the page shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.release.docs import sessions
from tests.support import lower
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND
from tests.support.patience import HANG
from tests.support.sources import SOURCES

PAGES = (
    "README.md",
    "docs/check.md",
    "docs/ci.md",
    "docs/commands.md",
    "docs/tutorial.md",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Creates the folder of a reader of the pages: a checkout, and an object file to inspect."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copy(lower.lower(SOURCES["globals"], llvm=22), tmp_path / "globals.o")
    return tmp_path


@pytest.mark.check
@pytest.mark.parametrize("page", PAGES)
def test_a_session_prints_what_the_page_shows(page: str, folder: Path) -> None:
    _follow((ROOT / page).read_text(encoding="utf-8"), folder)


def _follow(text: str, folder: Path) -> None:
    """Writes the files of a page's text and runs its commands."""
    env = environment(MGPU_RT_HIP="", MGPU_RT_MANAGER="off", COLUMNS="80")
    env["PATH"] = f"{COMMAND.parent}:{env['PATH']}"
    commands = 0
    for part in sessions.parts(text):
        if isinstance(part, sessions.File):
            (folder / part.name).write_text(part.text, encoding="utf-8")
            continue
        commands += 1
        result = subprocess.run(
            ["sh", "-c", part.line],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANG,
        )
        assert result.returncode == 0, result.stdout
        assert not sessions.missing(part.shown, result.stdout.splitlines()), part.line
    assert commands


def test_the_tutorials_step_is_the_examples() -> None:
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    step = text.partition("```mlir\n")[2].partition("```")[0]
    assert step in (ROOT / "examples" / "steps.mlir").read_text(encoding="utf-8")
