"""A program run with stock's behaviour and with the cache, and twice more with one word."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from mgpu_rt._cli import executable, preload
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import ENDING, Statistics, added, read

NAMES = ("stock's behaviour (MGPU_RT_CACHE=off)", "mgpu_rt")

_BOTH: tuple[dict[str, str], ...] = ({"MGPU_RT_CACHE": "off"}, {})
_WORDS = (
    {"MGPU_RT_EXCLUSIVE": "on"},
    {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
)

OUTPUT = "stdout"  # the file that holds a run's output, if it is to be compared

Read = TypeVar("Read")


class Run(NamedTuple):
    """One of the four runs of `compare --exclusive`."""

    statistics: Statistics
    seconds: float  # of all processes, each since its first call
    output: bytes


def compare(command: Sequence[str], device: str) -> tuple[Statistics, Statistics]:
    """The statistics of both runs. Raises CommandError."""
    return both(command, device, _statistics)


def with_word(command: Sequence[str], device: str) -> list[Run]:
    """Runs with stock's behaviour, with the cache, exclusive, and exclusive and lazy. Raises
    CommandError."""
    return _each(command, device, _run_of, (*_BOTH, *_WORDS), keep_output=True)


def _run_of(folder: Path) -> Run:
    files = [read(file) for file in sorted(folder.glob(f"*{ENDING}"))]
    seconds = sum(file.process.seconds for file in files if file.process)
    return Run(added(files), seconds, (folder / OUTPUT).read_bytes())


def _statistics(folder: Path) -> Statistics:
    return added(read(file) for file in sorted(folder.glob(f"*{ENDING}")))


def both(
    command: Sequence[str], device: str, read: Callable[[Path], Read], *, trace: bool = False
) -> tuple[Read, Read]:
    """Both runs, as `read` reads the folder that each run fills: its processes' statistics, and
    with `trace` a PID.trace of each. Raises CommandError."""
    before, after = _each(command, device, read, _BOTH, trace=trace)
    return before, after


def _each(
    command: Sequence[str],
    device: str,
    read: Callable[[Path], Read],
    sides: Sequence[dict[str, str]],
    *,
    trace: bool = False,
    keep_output: bool = False,
) -> list[Read]:
    """One run for each side's changes of the environment."""
    executable.check(command[0])
    environment = {
        name: value
        for name, value in preload.environment(preload.announced(device)).items()
        if name not in {"MGPU_RT_TRACE", *(name for side in sides for name in side)}
    }

    def run(side: dict[str, str]) -> Read:
        with tempfile.TemporaryDirectory() as folder:
            changes = {**side, "MGPU_RT_STATS": os.path.join(folder, f"%p{ENDING}")}
            if trace:
                changes["MGPU_RT_TRACE"] = os.path.join(folder, "%p.trace")
            _run(command, {**environment, **changes}, side, Path(folder) if keep_output else None)
            if not any(Path(folder).glob(f"*{ENDING}")):
                raise CommandError(
                    f"'{command[0]}' has left no statistics: unless a line above says why, it "
                    "called none of the library's functions. Name a program that MLIR lowered for "
                    "a GPU"
                )
            return read(Path(folder))

    return [run(side) for side in sides]


def _run(
    command: Sequence[str], environment: Mapping[str, str], side: dict[str, str], keep: Path | None
) -> None:
    """Runs the program with its stdout on stderr, by way of a file in the folder `keep`: stdout is
    the caller's. Ignores the exit status, since MLIR's main functions return none. Raises
    CommandError if a signal ended it."""
    try:
        if keep:
            with open(keep / OUTPUT, "wb") as output:
                done = subprocess.run([*command], env=environment, stdout=output)
            sys.stderr.flush()
            with open(sys.stderr.fileno(), "wb", closefd=False) as shown:
                shown.write((keep / OUTPUT).read_bytes())
        else:
            done = subprocess.run([*command], env=environment, stdout=sys.stderr.fileno())
    except OSError as error:
        why = executable.why_not(executable.find(command[0]), error)
        raise CommandError(f"'{command[0]}' cannot be executed: {why}") from None
    if done.returncode < 0:
        words = "".join(f"{name}={value} " for name, value in side.items())
        name = NAMES[_BOTH.index(side)] if side in _BOTH else words.strip()
        raise CommandError(
            f"with {name} '{command[0]}' was ended by signal {-done.returncode}, so "
            f"there is nothing to compare: see why with {words}mgpu-rt run -- {command[0]}"
        )
