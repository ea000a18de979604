"""Runs the commands of docs/ci.md and of the workflow in examples/ci with the wheel, in an empty
folder. PATH contains nothing of this checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.examples.test_ci import PAGE, PROJECT, set_up, steps
from tests.release.install import machine


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Creates an empty home folder. The test is skipped if pip reaches no package, or if the
    system's Python cannot create an environment."""
    words = ("-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path / "tried"), "iniconfig")
    if subprocess.run([sys.executable, *words], capture_output=True).returncode:
        pytest.skip("pip reaches no package")
    if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"]).returncode:
        pytest.skip("python3-venv is missing")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def as_a_user(folder: Path, script: str, home: Path, **env: str) -> str:
    """Runs commands without this checkout in PATH."""
    words = ("env", f"HOME={home}", "PATH=/usr/bin:/bin", "sh", "-ec", script)
    return machine.run(*words, cwd=folder, **env)


@pytest.mark.check_install
def test_the_workflow_runs_from_an_empty_folder(wheel: Path, home: Path) -> None:
    project = shutil.copytree(PROJECT, home / "project")
    path = home / "path"
    python = steps()["Python"].replace("/opt/venv", str(home / "venv"))
    as_a_user(home, python, home, MGPU_RT=str(wheel), GITHUB_PATH=str(path))
    said = {
        name: as_a_user(project, f"PATH={path.read_text().strip()}:$PATH\n{steps()[name]}", home)
        for name in ("Doctor", "Test", "Check")
    }
    assert "2 passed" in said["Test"] and said["Check"] == "511\n"


@pytest.mark.check_install
def test_the_page_leads_from_an_empty_folder_to_a_green_test(wheel: Path, home: Path) -> None:
    shutil.copytree(PROJECT, home / "examples/ci")
    installed = "\n".join(set_up()[1:]).replace("install /path/to/mgpu_rt ", f"install {wheel} ")
    first = re.search(r"^ {4}\$ (cp -r examples/ci .*)$", PAGE, re.MULTILINE)
    assert first
    assert "[100%]" in as_a_user(home, f"{installed}\n{first[1]}", home)
