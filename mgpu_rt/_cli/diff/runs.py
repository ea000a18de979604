"""Runs one side of a comparison (a program on a device), and records the program's launches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt._cli import executable, overrides, preload
from mgpu_rt._cli.errors import CommandError
from mgpu_rt.runtime import _noting
from mgpu_rt.runtime._folder import MANIFEST
from mgpu_rt.runtime._manifest import RecordedLaunch
from mgpu_rt.runtime._replay import Recording

#: One launch of a run: its kernel's full name, and its index among that kernel's launches, from 1.
Key = tuple[str, int]


@dataclass(frozen=True)
class Side:
    """A program, its device, and the environment that selects the device but does not preload the
    library."""

    name: str  # before, after
    command: Sequence[str]
    device: str
    environment: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(self.command)}, on {self.device}"


@dataclass(frozen=True)
class Notes:
    """The records of a run: its launches in order, and the number of launches that could not be
    recorded."""

    recording: Recording
    lost: int

    @property
    def launches(self) -> list[RecordedLaunch]:
        return self.recording.launches


def key(launch: RecordedLaunch) -> Key:
    return launch.label, launch.number


def side(name: str, command: Sequence[str], device: str) -> Side:
    """Raises CommandError if the program cannot run on the device."""
    base = {name: value for name, value in os.environ.items() if name != "MGPU_RT_TRACE"}
    if named := base.get("MGPU_RT_RUNTIME"):
        raise CommandError(
            f"MGPU_RT_RUNTIME={named} answers the calls that diff records: unset MGPU_RT_RUNTIME"
        )
    device = preload.announced(device)
    executable.check(command[0])
    return Side(name, command, device, preload.device_environment(device, base))


def run(side: Side, folder: Path, sample: int, whole: Iterable[Key] = ()) -> Notes:
    """Runs a side, and records launches in `folder`. With an empty `whole`, records all launches
    with hashes of memory. Otherwise records only the launches in `whole`, with all of their memory.
    The program's output goes to stderr. The program's stdin is empty, because diff may run the
    program more than once. Raises CommandError or Damaged."""
    folder.mkdir(mode=0o700)
    settings = {"output": str(folder), "sample": sample, "whole": json.dumps([*whole])}
    note = f"{_noting.__name__}:{_noting.Note.__name__}"
    environment = {
        **preload.with_library(side.environment),
        "MGPU_RT_RUNTIME": overrides.variable([note], settings),
    }
    how = {"env": environment, "stdin": subprocess.DEVNULL, "stdout": sys.stderr.fileno()}
    try:
        done = subprocess.run([*side.command], **how)
    except OSError as error:
        why = executable.why_not(executable.find(side.command[0]), error)
        raise CommandError(f"'{side.command[0]}' cannot be executed: {why}") from None
    if done.returncode < 0:
        raise CommandError(
            f"{side.name}, '{side.command[0]}' was ended by signal {-done.returncode}, so there is "
            f"nothing to compare: see why with mgpu-rt run --device {side.device} -- "
            f"{side.command[0]}"
        )
    return _read(side, folder, done.returncode)


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _read(side: Side, folder: Path, status: int) -> Notes:
    lost = sum(max(1, path.stat().st_size) for path in folder.glob(f"{_noting.LOST}.*"))
    found = [path for path in folder.iterdir() if path.is_dir()]
    said = f" (its exit status is {status})" if status else ""
    if len(found) == 1 and not _has_content(found[0] / MANIFEST):
        raise CommandError(
            f"{side.name}, no launch of '{side.command[0]}'{said} was completed: the lines above "
            "give the reason"
        )
    if len(found) == 1:
        return Notes(Recording(found[0]), lost)
    if found:
        raise CommandError(
            f"{side.name}, {len(found)} processes of '{side.command[0]}' launch kernels: diff "
            "compares one; run one rank, or the process alone"
        )
    why = "could be recorded: the lines above say why" if lost else "was made through this library"
    raise CommandError(f"{side.name}, no launch of '{side.command[0]}'{said} {why}")
