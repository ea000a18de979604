"""A program run twice: with stock's behaviour, and with the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from mgpu_rt.cli import executable, preload
from mgpu_rt.cli.errors import CommandError
from mgpu_rt.cli.stats.statistics import ENDING, Statistics, added, read

NAMES = ("stock's behaviour (MGPU_RT_CACHE=off)", "mgpu_rt")

Read = TypeVar("Read")


def compare(command: Sequence[str], device: str) -> tuple[Statistics, Statistics]:
    """The statistics of both runs. Raises CommandError."""
    return both(command, device, _statistics)


def _statistics(folder: Path) -> Statistics:
    return added(read(file) for file in sorted(folder.glob(f"*{ENDING}")))


def both(
    command: Sequence[str], device: str, read: Callable[[Path], Read], *, trace: bool = False
) -> tuple[Read, Read]:
    """Both runs, as `read` reads the folder that each run fills: its processes' statistics, and
    with `trace` a PID.trace of each. Raises CommandError."""
    try:
        reason = executable.obstacle(executable.find(command[0]))
    except CommandError as error:
        raise CommandError(str(error)) from None  # the status of a shell is for `run`
    if reason:
        raise CommandError(f"'{command[0]}' cannot be given mgpu_rt: {reason}")
    environment = {
        name: value
        for name, value in preload.environment(preload.announced(device)).items()
        if name not in ("MGPU_RT_CACHE", "MGPU_RT_TRACE")
    }

    def run(name: str, **changes: str) -> Read:
        with tempfile.TemporaryDirectory() as folder:
            changes["MGPU_RT_STATS"] = os.path.join(folder, f"%p{ENDING}")
            if trace:
                changes["MGPU_RT_TRACE"] = os.path.join(folder, "%p.trace")
            _run(command, {**environment, **changes}, name)
            if not any(Path(folder).glob(f"*{ENDING}")):
                raise CommandError(
                    f"'{command[0]}' called none of the library's functions: name a program that "
                    "MLIR lowered for a GPU"
                )
            return read(Path(folder))

    return run(NAMES[0], MGPU_RT_CACHE="off"), run(NAMES[1])


def _run(command: Sequence[str], environment: Mapping[str, str], name: str) -> None:
    """Runs the program with its stdout on stderr: stdout is the caller's. Ignores the exit status,
    since MLIR's main functions return none. Raises CommandError if a signal ended it."""
    try:
        done = subprocess.run([*command], env=environment, stdout=sys.stderr.fileno())
    except OSError as error:
        why = executable.why_not(executable.find(command[0]), error)
        raise CommandError(f"'{command[0]}' cannot be executed: {why}") from None
    if done.returncode < 0:
        cache = "MGPU_RT_CACHE=off " if name == NAMES[0] else ""
        raise CommandError(
            f"with {name} '{command[0]}' was ended by signal {-done.returncode}, so there is "
            f"nothing to compare: see why with {cache}mgpu-rt run -- {command[0]}"
        )
