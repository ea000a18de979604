"""Runs one process of an AMD test program on an emulated device, with a time limit and a given HIP
release."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.devices.rocm.surroundings import Surroundings


@dataclass(frozen=True)
class Ran:
    """A process's output and exit status; the status is None if the process exceeded its time
    limit."""

    status: int | None
    stdout: str
    stderr: str


def start(
    here: Surroundings,
    program: Path,
    *arguments: str,
    libraries: Path,
    chip: str,
    time_limit: float,
) -> Ran:
    """Runs a program in the program's folder. Child processes of the program end with the
    program."""
    env = here.environment({**os.environ, "MGPU_RT_SOFTGPU": chip})
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [*here.prefix(str(libraries)), f"./{program.name}", *arguments],
            cwd=program.parent,
            env={name: text for name, text in env.items() if name != "LD_LIBRARY_PATH"},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(time_limit)
        finally:  # a failed test leaves its own children behind
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Ran(status, *(_text(file) for file in (out, err)))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
