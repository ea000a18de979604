"""Examples' scripts that cannot run print one sentence and return status 2. README.md lists all
examples."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.release.examples.conftest import EXAMPLES, INDEX
from tests.support.command import COMMAND
from tests.support.patience import run_process


def said(script: str, *arguments: str, **env: str) -> str:
    """Returns the message of a script that cannot run."""
    result = run_process(["/bin/sh", EXAMPLES / script, *arguments], {**os.environ, **env})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr.rstrip()


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Returns a PATH that contains only mgpu-rt and the usual tools of a shell script."""
    for tool in ("dirname", "mktemp", "readlink", "rm"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    (tmp_path / "mgpu-rt").symlink_to(COMMAND)
    return str(tmp_path)


def test_a_script_that_cannot_run_names_the_cause(bare: str) -> None:
    assert said("runner/run.sh", "7") == "run.sh: '7' is neither 22 nor 19"
    assert said("mpi/run.sh", PATH=bare) == "run.sh: there is no cmake in PATH"
    assert said("mpi/two_gpus.sh", PATH=bare).startswith("two_gpus.sh: there is no mpirun:")
    assert said("mpi/two_gpus.sh", "pack", PATH=bare).startswith("two_gpus.sh: there is no mpicc:")
    assert said("mpi/two_gpus.sh", "unpack") == "two_gpus.sh: 'unpack' is neither pack nor run"
    assert "/nowhere/ranks is missing: pack it" in said("mpi/two_gpus.sh", FOLDER="/nowhere")
    Path(bare, "mgpu-rt").unlink()
    assert said("runner/run.sh", "22", PATH=bare) == "run.sh: there is no mgpu-rt"
    assert said("mpi/run.sh", PATH=bare) == "run.sh: there is no mgpu-rt in PATH"


# ---- the index ----


def test_every_program_and_script_is_listed() -> None:
    linked = set(re.findall(r"\]\(([\w/.]+)\)", INDEX))
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir() and "build" not in path.name]
    files = {str(path.relative_to(EXAMPLES)) for folder in folders for path in folder.iterdir()}
    shown = {name for name in files if name.endswith((".c", ".cpp", ".py")) or "CMake" in name}
    parts = {"mpi/CMakeLists.txt", "python/descriptor.py", "python/lowered.py"}  # of the others
    assert shown - linked <= parts
    for script in (name for name in files if name.endswith(".sh")):
        assert f"`sh {script}" in INDEX, script
