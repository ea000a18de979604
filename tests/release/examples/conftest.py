"""Runs the examples as a user does. mgpu_rt comes from `make install`, and only the examples come
from the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.child import ROOT, environment
from tests.support.patience import run_process

EXAMPLES = ROOT / "examples"
INDEX = (EXAMPLES / "README.md").read_text(encoding="utf-8")
Run = Callable[..., subprocess.CompletedProcess[str]]


def shown(example: str) -> str:
    """Returns the command that examples/README.md shows for an example."""
    row = re.search(rf"^\| \[{re.escape(example)}\].*?`([^`]*)` \|$", INDEX, re.MULTILINE)
    assert row, example
    return row[1]


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder in which mgpu_rt is installed."""
    place = tmp_path_factory.mktemp("examples") / "usr"
    words = ["make", "-C", ROOT, f"PREFIX={place}", f"INSTALL_PYTHON={sys.executable}", "install"]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return place


@pytest.fixture(scope="session")
def run(prefix: Path) -> Run:
    """Runs a command in a copy of the folder, with the installed mgpu-rt in PATH; the command must
    succeed."""
    folder = prefix.parent / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("build*"))

    def run(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
        clean = environment(MGPU_RT_MANAGER="off")
        for name in ("MGPU_RT_HIP", "HIPSTUB_MODE"):  # the examples run on the emulated device
            clean.pop(name)
        clean["PATH"] = f"{prefix / 'bin'}:{os.environ['PATH']}"
        result = run_process(list(map(str, words)), {**clean, **env}, cwd=folder)
        assert result.returncode == 0, result.stderr
        return result

    return run
