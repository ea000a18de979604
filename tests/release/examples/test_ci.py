"""Tests the small project of examples/ci like the project's workflow: without a GPU, from a fresh
clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.release.examples.conftest import EXAMPLES
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND
from tests.support.patience import HANG

PROJECT = EXAMPLES / "ci"
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
WORKFLOW = (PROJECT / ".github/workflows/gpu.yml").read_text(encoding="utf-8")

#: A step of the workflow that runs commands: its name, and the commands in one line or in a block.
_STEP = re.compile(r"- name: (\w+)\n +run: (?:\|\n((?: {10}.*\n)+)|(.*)\n)")


def steps() -> dict[str, str]:
    """Returns a dictionary from the name of each step in the workflow to the commands of the
    step."""
    return {name: textwrap.dedent(block) or line for name, block, line in _STEP.findall(WORKFLOW)}


def clone(folder: Path) -> Path:
    """Makes the example a repository, and clones it."""
    shutil.copytree(PROJECT, folder / "origin", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", folder / "origin", "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run(["git", "clone", "-q", folder / "origin", folder / "clone"], check=True)
    return folder / "clone"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone(tmp_path_factory.mktemp("project"))


def run(project: Path, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs commands in a folder with this checkout's mgpu-rt, pytest and lit in PATH."""
    clean = {
        name: text
        for name, text in environment(MGPU_RT_MANAGER="off").items()
        if name not in ("MGPU_RT_HIP", "HIPSTUB_MODE") and not name.startswith("PYTEST")
    }
    clean["PATH"] = f"{COMMAND.parent}:{os.environ['PATH']}"
    words = {"capture_output": True, "text": True, "timeout": HANG}
    return subprocess.run(["sh", "-ec", script], cwd=project, env={**clean, **env}, **words)


def test_the_steps_are_read() -> None:
    assert [*steps()] == ["Tools", "Python", "Doctor", "Test", "Check"]
    assert steps()["Test"] == "pytest --mgpu-device softgpu"


@pytest.mark.check
@pytest.mark.parametrize("step", ["Doctor", "Check"])
def test_a_step_of_the_workflow_ends_well(step: str, project: Path) -> None:
    """docs/ci.md shows a session with the command of the step Test."""
    done = run(project, steps()[step])
    assert done.returncode == 0, done.stdout + done.stderr


# ---- faults ----


@pytest.mark.check
def test_a_fault_in_the_program_fails_the_check(project: Path, tmp_path: Path) -> None:
    text = (project / "saxpy.mlir").read_text()
    wrong = text.replace("threads in (%count,", "threads in (%more,")
    wrong = wrong.replace("%start = gpu", "%more = arith.constant 300 : index\n    %start = gpu")
    (tmp_path / "saxpy.mlir").write_text(
        wrong.replace("kernel {", "kernel attributes {known_block_size = array<i32: 300,1,1>} {")
    )
    done = run(tmp_path, steps()["Check"])
    assert done.returncode == 1, done.stderr
    assert "saxpy.mlir:" in done.stderr


@pytest.mark.check
def test_lit_finds_the_functions_that_print_memrefs(project: Path, tmp_path: Path) -> None:
    """These functions are in a library of their own (docs/install.md)."""
    shutil.copy(project / "lit.cfg.py", tmp_path)
    text = (project / "saxpy.mlir").read_text()
    text = text.replace("printF32(%result) : (f32)", "printMemrefF32(%all) : (memref<*xf32>)")
    text = text.replace("@printF32(f32)", "@printMemrefF32(memref<*xf32>)")
    text = text.replace(
        "%result = memref.load %y[%last] : memref<256xf32>",
        "%all = memref.cast %y : memref<256xf32> to memref<*xf32>",
    )
    text = text.replace("_c_runner_utils", "_c_runner_utils,%mlir_runner_utils")
    (tmp_path / "printed.mlir").write_text(text)
    done = run(tmp_path, "lit -v .")
    assert "Passed: 1 (100.00%)" in done.stdout, done.stdout + done.stderr


@pytest.mark.check
def test_lit_runs_the_run_lines(project: Path) -> None:
    """One of two programs prints what its lines expect."""
    shutil.copy(project / "saxpy.mlir", project / "wrong.mlir")
    text = (project / "wrong.mlir").read_text()
    (project / "wrong.mlir").write_text(text.replace("CHECK: 511", "CHECK: 512"))
    try:
        said = run(project, "lit -v . || true").stdout
        assert "Passed: 1 (50.00%)" in said and "Failed: 1 (50.00%)" in said, said
    finally:
        (project / "wrong.mlir").unlink()
