"""The current folder contains files with the names of modules. The package's Python processes
import no file of the current folder, except a module that the user has named."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.child import ROOT, environment, library
from tests.support.command import COMMAND
from tests.support.hosting import host_command, promptly
from tests.support.patience import run_process
from tests.support.suites import in_check

PLANTED = "import os; os.write(2, b'planted: ' + __name__.encode() + b'\\n')\n"
OTHERS = ("_cffi_backend", "cffi", "click", "numpy", "sitecustomize", "usercustomize")
NAMED = """
import json, numpy
from mgpu_rt.hooks import Trace as Trace
from mgpu_rt.manager import DefaultPolicy as DefaultPolicy
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with a module for each name that Python or this package may import. The
    user's module is `mine`."""
    folder = tmp_path_factory.mktemp("planted")
    here = [name for name in sys.stdlib_module_names if importlib.util.find_spec(name)]
    for name in (*here, *OTHERS):
        (folder / f"{name}.py").write_text(PLANTED)
    (folder / "mgpu_rt" / "_selftest").mkdir(parents=True)
    for package in ("mgpu_rt", "mgpu_rt/_selftest"):
        (folder / package / "__init__.py").write_text(PLANTED)
    (folder / "mine.py").write_text(NAMED)
    return folder


def run(folder: Path, command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    done = run_process(command, environment(MGPU_RT_MANAGER="delay=100000", **env), cwd=folder)
    assert "planted" not in done.stderr
    return done


def test_replay_runs_nothing_of_the_current_folder(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "launch.json").write_text("{}")
    done = run(planted, [str(COMMAND), "replay", "--device", "hip", str(tmp_path)])
    assert (done.returncode, "is no launch" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "hook",
    in_check(["trace", "nan", "mine:Trace"], lambda hook: hook.startswith("n")),
)
def test_a_hook_runs_nothing_else_of_the_current_folder(planted: Path, hook: str) -> None:
    """The module that the user names may be in the current folder."""
    done = run(
        planted,
        [str(COMMAND), "run", "--device", "hip", "--hook", hook, "--", *host_command("plain")],
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert hook == "nan" or "stream_create() = " in done.stderr


def test_a_hook_in_a_python_program_runs_nothing_of_the_current_folder(
    planted: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import ctypes; ctypes.CDLL('{library()}').mgpuStreamCreate()\n")
    done = run(planted, [sys.executable, str(script)], MGPU_RT_RUNTIME="mine:Trace")
    assert (done.returncode, "stream_create() = " in done.stderr) == (0, True), done.stderr


def test_a_folder_that_was_removed_is_not_searched(tmp_path: Path) -> None:
    script = f"mkdir gone && cd gone && rmdir ../gone && {' '.join(host_command('plain'))}"
    done = run(tmp_path, ["sh", "-c", script], MGPU_RT_RUNTIME="mgpu_rt.hooks:Trace")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("policy", ["", "mine:DefaultPolicy"])
def test_the_manager_runs_nothing_else_of_the_current_folder(planted: Path, policy: str) -> None:
    env = promptly(MGPU_RT_POLICY=policy)
    done = run_process(host_command("served"), env, cwd=planted)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert "planted" not in done.stderr
    assert "manager: Python" in done.stderr


def test_the_package_starts_python_in_no_other_way() -> None:
    """The package starts no Python but the command itself, as it was started, and Python that
    imports nothing of the current folder (-I)."""
    for path in ROOT.glob("mgpu_rt/**/*.py"):
        started = {*re.findall(r"\[sys\.executable, (.*?),", path.read_text())}
        assert started <= {'"-I"'} or path.name == "preload.py", path
