"""Runs the commands of docs/ci.md and of the workflow in examples/ci with the wheel, in an empty
folder. PATH contains nothing of this checkout. Checks that Debian 12 has the packages, and that the
container image and the metadata are true."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.release.examples.test_ci import PAGE, PROJECT, steps
from tests.release.examples.test_ci import run as run_here
from tests.release.install import machine
from tests.support.child import ROOT


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


def set_up() -> list[str]:
    """Returns the commands in the first code block of the page. The commands install Debian's
    packages, create an environment, and install pip's packages."""
    found = re.search(r"## Set up\n[^#]*?\n((?: {4}.*\n)+)", PAGE)
    assert found
    return textwrap.dedent(found[1]).splitlines()


def installs(place: str) -> str:
    """Returns the commands that install packages, from a page or a workflow."""
    if place == "Dockerfile":
        text = (ROOT / "csrc/packaging/Dockerfile").read_text(encoding="utf-8")
        return "\n".join(re.findall(r"apt-get install [^&]*", text.replace("\\\n", "")))
    return steps()["Tools"] if place == "workflow" else set_up()[0]


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


@pytest.mark.check_install
@pytest.mark.parametrize("place", ["workflow", "page", "Dockerfile"])
def test_debian_12_has_the_packages(place: str, tmp_path: Path) -> None:
    """apt-get only simulates the installation, without root and network."""
    release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    if 'VERSION_ID="12"' not in release or "ID=debian" not in release:
        pytest.skip("this is no Debian 12")
    lists = subprocess.run(["apt-cache", "show", "libamdhip64-5"], capture_output=True)
    if lists.returncode:
        pytest.skip("apt-get update has not run here")
    simulated = tmp_path / "apt-get"
    simulated.write_text(
        f'#!/bin/sh\ntest "$1" = update || exec {shutil.which("apt-get")} --simulate "$@"\n'
    )
    simulated.chmod(0o755)
    script = installs(place)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run_here(tmp_path, script, PATH=path)
    assert done.returncode == 0, done.stderr
    wrong = run_here(tmp_path, f"{script.rstrip()} mlir-220-tools", PATH=path)
    assert "Unable to locate package mlir-220-tools" in wrong.stderr


# ---- the container image, and the package's metadata ----


PACKAGING = ROOT / "csrc" / "packaging"


def test_the_image_has_the_packages_that_the_page_names() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    line = re.search(r"^    apt-get install (.*)$", page, re.MULTILINE)
    assert line
    text = (PACKAGING / "Dockerfile").read_text(encoding="utf-8")
    assert set(line[1].split()) <= set(re.split(r"[\s\\]+", text))


def test_an_image_is_built_of_what_git_has() -> None:
    """The container image contains no object files of this machine, because make would consider the
    files up to date."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    wanted = {f"**/{line}".replace("**//", "").rstrip("/") for line in ignored}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line for line in lines if line[:1] != "#"} == wanted | {".git"}


def test_the_metadata_names_no_address_that_is_not_there() -> None:
    code = "import importlib.metadata as m; print(m.metadata('mgpu_rt').as_string())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Project-URL" not in done.stdout  # the project has no address yet
    assert "Classifier: Typing :: Typed" in done.stdout
