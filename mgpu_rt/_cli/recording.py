"""Converts the recordings of a program's processes, for `mgpu-rt run`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats import faults, statistics
from mgpu_rt._record import Recording
from mgpu_rt._record_json import trace
from mgpu_rt._text import say

#: For each variable that may name a recording: the word that may precede the path, and the option
#: of `mgpu-rt run` for such an output.
_VARIABLES = {"MGPU_RT_STATS": ("1", "--stats-json"), "MGPU_RT_TRACE": ("markers", "--trace")}
_NO_FILE = ("", "0", "off", "1", "on", "/dev/null")

_NO_TABLE = "it has not ended by exit, so it printed no table; --stats-json writes a file also then"


def must_have_no_file(environment: Mapping[str, str]) -> None:
    """Raises CommandError if a variable names a recording. The library makes only one recording,
    so either this file or the command would get none."""
    for variable, (word, option) in _VARIABLES.items():
        value = environment.get(variable, "")
        first, _, rest = value.partition(",")
        if (rest if first == word else value) not in _NO_FILE:
            raise CommandError(
                f"{variable} names a file, but the library makes only one recording, which this "
                f"command needs: unset {variable}, or give {option} PATH in its place"
            )


@contextlib.contextmanager
def folder_beside(output: str) -> Iterator[Path]:
    """Yields a folder for recordings, in the output's folder, which other machines may share. The
    folder stays if a recording could not be converted."""
    parent = os.path.dirname(os.path.abspath(output))
    is_beside = output and _is_file(output) and os.access(parent, os.W_OK)
    try:
        if not is_beside or "%" in parent:
            parent = tempfile.gettempdir()  # the library would expand %p
        folder = Path(tempfile.mkdtemp(prefix=".mgpu_rt-", dir=parent))
    except OSError as error:
        way = "set TMPDIR to a folder that can be written"
        raise CommandError(f"{error.strerror}: {way}") from None
    yield folder
    if not any(folder.iterdir()):
        folder.rmdir()


def convert(folder: Path, stats_json: str, trace_file: str, main: int, *, notes: bool) -> str:
    """Writes the outputs of the processes that have recorded in a folder, and removes the
    recordings. An output whose name is "" is not wanted. `main` is the process that the command has
    started. The outputs of a process that still runs have its calls so far. A recording that cannot
    be converted stays, and a line says why. With `notes`, prints what the table at exit does not
    show. Returns how many calls failed, and how many recordings are lost; "" if none."""
    outputs = ((stats_json, statistics.statistics_text), (trace_file, trace))
    taken: set[str] = set()
    failed = 0
    found, lost = _recordings(folder, main)
    for file, recording in found:
        failed += sum(recording.values("failures"))
        process = f"process {recording.value('process', 'id')}: " if len(found) > 1 else ""
        try:
            with statistics.damage_named(file):
                lines = faults.of_recording(recording)
                if notes:
                    run = statistics.parse(statistics.statistics(recording), file)
                    lines += [*run.notes, *run.advice]
                    if not recording.value("process", "exited"):
                        lines.append(_NO_TABLE)
                for line in lines:
                    say(f"mgpu-rt: {process}{line}")
                for pattern, text_of in filter(lambda output: output[0], outputs):
                    path = _name(pattern, recording, taken)
                    taken.add(path)
                    files.write(path, text_of(recording))
                    if text_of is trace and recording.replaced:
                        say(f"mgpu-rt: '{path}' lacks the {recording.replaced:,} oldest events")
            file.unlink(missing_ok=True)
        except CommandError as error:
            say(f"mgpu-rt: {error.message.rstrip('.')}; the recording stays in '{file}'")
    told = [f"{failed} call{'s' * (failed != 1)} failed"] if failed else []
    if lost:
        told.append(f"{lost} {'recording is' if lost == 1 else 'recordings are'} lost")
    return " and ".join(told)


def _recordings(folder: Path, main: int) -> tuple[list[tuple[Path, Recording]], int]:
    """Returns the recordings in the order in which they get names: the main process's first. Also
    returns the number of recordings that cannot be read; a line says why."""
    found, lost = [], 0
    for file in folder.iterdir():
        try:
            recording = _read(file)
            (row,) = recording.rows("process")
            found.append(((row["id"] != main, row["begin"], file.name), file, recording))
        except (CommandError, OSError) as error:
            say(f"mgpu-rt: {error}")
            lost += 1
    found.sort(key=lambda each: each[0])
    return [(file, recording) for _, file, recording in found], lost


def _read(file: Path) -> Recording:
    """Reads the recording of a process; removes an empty file. Raises CommandError or OSError."""
    if not file.stat().st_size:
        file.unlink()
        raise CommandError(f"'{file}' was empty: {statistics.LOST}")
    recording = statistics.recording(file, files.read(str(file), statistics.LOST))
    if recording is None:
        raise CommandError(f"'{file}' cannot be read: the recording is damaged")
    return recording


def _is_file(path: str) -> bool:
    """Returns True for a regular file, or if there is nothing at the path."""
    return not os.path.lexists(path) or os.path.isfile(path)


# ---- the names of the outputs ----


def _name(pattern: str, recording: Recording, taken: set[str]) -> str:
    """Returns the name of a process's output. %p becomes the process id, and %r the rank. If the
    pattern contains neither, the rank is inserted. A further process's name contains its id."""
    (row,) = recording.rows("process")
    pid, rank = str(row["id"]), row["rank"]  # -1: none
    path = pattern.replace("%p", pid).replace("%r", str(max(rank, 0)))
    if not _is_file(path):
        return path  # a device, or a pipe
    words = [f"rank{rank}"] if rank >= 0 and "%p" not in pattern and "%r" not in pattern else []
    tries = [words, [*words, pid], *([*words, pid, str(number)] for number in range(2, 1000))]
    root, extension = os.path.splitext(path)  # s.json becomes s.rank3.json
    names = (".".join([root, *each]) + extension for each in tries)
    return next(name for name in names if name not in taken)
