"""Runs the command mgpu-rt in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from mgpu_rt._cli.main import main
from tests.support import nursery
from tests.support.child import environment

COMMAND = Path(sys.executable).with_name("mgpu-rt")


def command(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs mgpu-rt in a fork of a process that has imported it, over the stub of HIP unless `env`
    names another HIP."""
    words = ["mgpu_rt._cli.main", *map(str, arguments)]
    return nursery.run(words, environment(**env), str(COMMAND))


def invoke(*arguments: str, **env: str | None) -> Result:
    """Runs a command in this process; the command must not execute another program."""
    clean = {name: None for name in os.environ if name.startswith("MGPU_RT_")}
    return CliRunner().invoke(main, arguments, env={**clean, "COLUMNS": "300", **env})


def assert_sentence(status: int, stderr: str, words: str) -> None:
    """Checks that a command has failed with one line that names the cause."""
    assert status == 2
    assert stderr.startswith("mgpu-rt: ")
    assert stderr.count("\n") == 1
    assert words in stderr


def python(*words: str) -> tuple[str, ...]:
    """Returns a program that prints the result of a Python expression, as JSON."""
    code = f"import json, os, sys; print(json.dumps({' '.join(words)}))"
    return ("run", "--", sys.executable, "-c", code)
