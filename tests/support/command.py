"""Runs the command mgpu-rt in tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from unittest import mock

from click.testing import CliRunner, Result

from mgpu_rt._cli.main import main
from tests.support import nursery
from tests.support.child import environment

#: The end of check's last line on the emulated GPU, and the whole line if there is no fault.
UNEXAMINED = "; not examined: what host code itself reads and writes"
NO_FAULT = f"mgpu-rt: found no fault{UNEXAMINED}\n"

COMMAND = Path(sys.executable).with_name("mgpu-rt")


def command(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs mgpu-rt in a fork of a process that has imported it, over the stub of HIP unless `env`
    names another HIP."""
    words = ["mgpu_rt._cli.main", *map(str, arguments)]
    return nursery.run(words, environment(**env), str(COMMAND))


def invoke(*arguments: str, **env: str | None) -> Result:
    """Runs a command in this process. Raises AssertionError if the command executes another
    program. Pytest would otherwise become that program, and end with its exit status."""
    clean = {name: None for name in os.environ if name.startswith("MGPU_RT_")}
    with _refused() as executed:
        result = CliRunner().invoke(main, arguments, env={**clean, "COLUMNS": "400", **env})
    assert not executed, f"mgpu-rt {' '.join(arguments)} executes {executed[0]}"
    return result


@contextlib.contextmanager
def _refused() -> Iterator[list[object]]:
    """Yields a list of the programs that this process tries to execute. All functions os.exec...
    call execv or execve. A list is needed, because the caller may catch the exception."""
    executed: list[object] = []

    def refuse(path: object, *_: object) -> NoReturn:
        executed.append(path)
        for changed in (signal.SIGPIPE, signal.SIGXFSZ):  # before a command executes a program
            signal.signal(changed, signal.SIG_IGN)
        raise AssertionError(f"the process of the tests executes {path}")

    with mock.patch.multiple(os, execv=refuse, execve=refuse):
        yield executed


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
