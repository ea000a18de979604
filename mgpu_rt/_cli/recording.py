"""Converts the recordings of a program's processes, for `mgpu-rt run`."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats import statistics
from mgpu_rt._record import Recording
from mgpu_rt._record_json import fault_address, lost_events, trace
from mgpu_rt._text import printable


class Outputs(NamedTuple):
    """The files that the user wants; "": none."""

    stats_json: str
    trace: str


class _Process(NamedTuple):
    pid: int
    rank: int  # -1: none
    file: Path
    recording: Recording


@contextlib.contextmanager
def folder_beside(output: str) -> Iterator[Path]:
    """Yields a folder for recordings, in the output's folder, which other machines may share. The
    folder stays if a recording could not be converted."""
    from mgpu_rt._cli import files

    parent = os.path.dirname(os.path.abspath(output))
    is_beside = output and _is_file(output) and os.access(parent, os.W_OK)
    try:
        if not is_beside or "%" in parent:
            parent = tempfile.gettempdir()  # the library would expand %p
        folder = Path(tempfile.mkdtemp(prefix=".mgpu_rt-", dir=parent))
    except OSError as error:
        raise files.unwritable(parent, error) from None
    yield folder
    if not any(folder.iterdir()):
        folder.rmdir()


def convert(folder: Path, outputs: Outputs, main: int) -> None:
    """Writes the outputs of the processes that have recorded in a folder, and removes the
    recordings. `main` is the process that the command has started. The outputs of a process that
    still runs have its calls so far. A recording that cannot be converted stays, and a line says
    why."""
    taken: set[str] = set()
    for process in _processes(folder, main):
        try:
            _explain_fault(process)
            _convert_one(process, outputs, taken)
        except CommandError as error:
            _say(f"{error.message.rstrip('.')}; the recording stays in '{process.file}'")


def _say(sentence: str) -> None:
    click.echo(f"mgpu-rt: {printable(sentence)}", err=True)


def _processes(folder: Path, main: int) -> list[_Process]:
    """Returns the processes in the order in which they get names: the main process first."""
    found = []
    for file in sorted(folder.iterdir()):
        try:
            recording = statistics.recording(file, file.read_bytes())
        except (CommandError, OSError) as error:
            told = error.message if isinstance(error, CommandError) else str(error)
            _say(told)
            continue
        if recording is None:
            continue
        (row,) = recording.rows("process")
        process = _Process(row["id"], row["rank"], file, recording)
        found.append((row["id"] != main, row["begin"], process))
    return [process for _, _, process in sorted(found, key=lambda each: each[:2])]


def _convert_one(process: _Process, outputs: Outputs, taken: set[str]) -> None:
    for pattern, is_trace in ((outputs.stats_json, False), (outputs.trace, True)):
        if not pattern:
            continue
        path = _name(pattern, process, taken)
        taken.add(path)
        _write(process.recording, path, is_trace)
    process.file.unlink(missing_ok=True)


def _explain_fault(process: _Process) -> None:
    from mgpu_rt._cli.stats import faults

    if process.recording.is_trace:
        with statistics.damage_named(process.file):
            lines = faults.of_recording(process.recording)
    elif (address := fault_address(process.recording)) is not None:
        lines = [
            f"a kernel accessed address {address:#x}, which it may not access: mgpu-rt run --trace "
            "FILE records what lies there"
        ]
    else:
        return
    for line in lines:
        _say(line)


def _write(recording: Recording, path: str, is_trace: bool) -> None:
    from mgpu_rt._cli import files

    files.write(path, trace(recording) if is_trace else statistics.statistics_text(recording))
    if not is_trace:
        return
    kept, lost = lost_events(recording)
    if lost:
        told = f"'{path}': of {kept + lost} events the newest {kept} were kept"
        _say(told)


def _is_file(path: str) -> bool:
    """Returns True for a regular file, or if there is nothing at the path."""
    return not os.path.lexists(path) or os.path.isfile(path)


# ---- the names of the outputs ----


def _name(pattern: str, process: _Process, taken: set[str]) -> str:
    """Returns the name of a process's output. %p becomes the process id, and %r the rank. If the
    pattern contains neither, the rank is inserted. A further process's name contains its id."""
    values = {"%p": str(process.pid), "%r": str(max(process.rank, 0))}
    path = re.sub("%[pr]", lambda found: values[found[0]], pattern)
    if not _is_file(path):
        return path  # a device, or a pipe
    words = []
    if process.rank >= 0 and "%p" not in pattern and "%r" not in pattern:
        words.append(f"rank{process.rank}")
    tries = [words, [*words, str(process.pid)]]
    tries += [[*words, str(process.pid), str(number)] for number in range(2, 1000)]
    return next(name for name in (_inserted(path, each) for each in tries) if name not in taken)


def _inserted(path: str, words: list[str]) -> str:
    """Inserts words before the extension: s.json becomes s.rank3.json."""
    if not words:
        return path
    folder, name = os.path.split(path)
    stem, dot, extension = name[1:].rpartition(".")
    first = name[:1] + (stem if dot else extension)
    return os.path.join(folder, ".".join([first, *words]) + (f".{extension}" if dot else ""))
