"""Runs a program with stock's behaviour and with the cache; `compare --exclusive` adds two runs."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mgpu_rt._cli import child, executable, preload, source, terminal
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import (
    ENDING,
    Counter,
    Statistics,
    added,
    devices,
    read,
    total,
)
from mgpu_rt._cli.stats.tables import REGISTRATIONS, questions, right_aligned, waits
from mgpu_rt._text import columns

NAMES = ("stock's behaviour (MGPU_RT_CACHE=off)", "mgpu_rt")

_BOTH: tuple[dict[str, str], ...] = ({"MGPU_RT_CACHE": "off"}, {})
_WORDS = (
    {"MGPU_RT_EXCLUSIVE": "on"},
    {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
)

OUTPUT = "stdout"  # the file for a run's output, if outputs are compared


class Run(NamedTuple):
    """A run of the program, on one side of a comparison."""

    statistics: Statistics  # sum over all processes
    seconds: float  # sum over all processes, each since its first call
    output: bytes = b""  # if outputs are compared
    files: tuple[Statistics, ...] = ()  # one for each process


def with_word(command: Sequence[str], device: str) -> list[Run]:
    """Runs a program in four modes: with stock's behaviour, with the cache, with --exclusive, and
    with --exclusive --lazy. Raises CommandError."""
    return _each(command, device, (*_BOTH, *_WORDS), keep_output=True)


def both(command: Sequence[str], device: str, repeat: int = 1) -> tuple[list[Run], list[Run]]:
    """Runs both sides `repeat` times, in turn, and returns the runs of each side. Raises
    CommandError."""
    found = _each(command, device, _BOTH * repeat)
    return found[::2], found[1::2]


def _each(
    command: Sequence[str],
    device: str,
    sides: Sequence[dict[str, str]],
    *,
    keep_output: bool = False,
) -> list[Run]:
    executable.check(command[0])
    device = preload.announced(device)
    environment = {
        name: value
        for name, value in preload.environment(device).items()
        if name
        not in {"MGPU_RT_STATS", "MGPU_RT_TRACE", *(name for side in sides for name in side)}
    }

    def run(side: dict[str, str]) -> Run:
        with tempfile.TemporaryDirectory() as name:
            folder, kept = Path(name), Path(name, OUTPUT)
            changes = {**side, "MGPU_RT_STATS": os.path.join(name, f"%p{ENDING}")}
            ended = _run(command, {**environment, **changes}, folder if keep_output else None)
            words = "".join(f"{name}={value} " for name, value in side.items())
            who = f"with {_name(side)} '{source.named(command[0])}'"
            child.must_exit(ended, command, who, device, words)
            files = tuple(read(file) for file in sorted(folder.glob(f"*{ENDING}")))
            output = kept.read_bytes() if keep_output else b""
        if not files:
            raise CommandError(f"unless a line above says why, {source.no_call(command[0])}")
        seconds = sum(file.process.seconds for file in files if file.process)
        return Run(added(files), seconds, output, files)

    found = []
    for number, side in enumerate(sides, 1):
        terminal.step(f"run {number} of {len(sides)}: {_name(side)}")
        found.append(run(side))
    return found


def _name(side: dict[str, str]) -> str:
    words = " ".join(f"{name}={value}" for name, value in side.items())
    return NAMES[_BOTH.index(side)] if side in _BOTH else words


def _run(command: Sequence[str], environment: Mapping[str, str], keep: Path | None) -> child.Ended:
    """Runs the program, and prints the program's stdout on stderr, because stdout belongs to the
    caller. A file in the folder `keep` gets a copy of the program's stdout. The exit status does
    not count, because MLIR's main functions return no status."""
    with open(keep / OUTPUT, "wb") if keep else contextlib.nullcontext() as output:
        stdout = output or sys.stderr.fileno()
        ended = child.run(command, environment, stdout=stdout)
    if keep:
        sys.stderr.flush()
        with open(sys.stderr.fileno(), "wb", closefd=False) as shown:
            shown.write((keep / OUTPUT).read_bytes())
    return ended


# ---- `compare --exclusive`: four runs of a program, and what the options gain ----

SIDES = ("stock", "mgpu_rt", "--exclusive", "--exclusive --lazy")

#: The conditions of the options, which the library cannot check.
CONDITIONS = {
    "--exclusive": "nothing else in the process calls HIP",
    "--exclusive --lazy": "nothing else in the process calls HIP, if no host code reads device "
    "memory through a pointer",
}
ONCE = "Each side ran once"
NOISE = 0.05  # relative to a time: a smaller difference is noise


def _parts(run: Run) -> dict[str, Counter]:
    program, driver = run.statistics.program, run.statistics.driver
    return {
        "registrations": total(program[name] for name in REGISTRATIONS if name in program),
        "waits": waits(driver),
        "questions": total(questions(driver).values()),
    }


#: The address that LLVM's printMemref functions print.
_ADDRESS = re.compile(rb"\bbase@ = 0x[0-9a-f]+")


def _same_output(runs: Sequence[Run]) -> list[bool]:
    """Returns, for each run, whether the run's output equals the first run's output, apart from the
    addresses of memrefs."""
    outputs = [_ADDRESS.sub(b"", run.output) for run in runs]
    return [output == outputs[0] for output in outputs]


def word_as_dict(runs: Sequence[Run]) -> dict[str, Any]:
    return {
        side: {
            "seconds": run.seconds,
            **{f"{kind}_ns": part.ns for kind, part in _parts(run).items()},
            "same_output": same,
        }
        for side, run, same in zip(SIDES, runs, _same_output(runs), strict=True)
    }


def word_lines(runs: Sequence[Run]) -> Iterator[str]:
    parts = [_parts(run) for run in runs]
    rows = [("since the first call", *(f"{1e3 * run.seconds:.3f}" for run in runs))]
    rows += [(kind, *(f"{part[kind].ns / 1e6:.3f}" for part in parts)) for kind in parts[0]]
    rows.append(("output", *("same" if same else "DIFFERS" for same in _same_output(runs))))
    for side, run in zip(SIDES[2:], runs[2:], strict=True):
        yield from (f"{side}: {failure}" for failure in run.statistics.failures)
    yield ""
    yield from right_aligned(("with the options, ms", *SIDES), rows)
    yield ""
    yield from columns([("note", _advice(runs))])


def _advice(runs: Sequence[Run]) -> str:
    same = _same_output(runs)
    if not same[1]:
        return (
            "Two runs without the options print different output, so nothing shows whether an "
            "option changes it. Let the program print no times or addresses."
        )
    told = []
    best, kind = 1, ""
    for number in (2, 3):
        if runs[number].statistics.failed:
            told.append(f"Calls failed with {SIDES[number]}: run the program without it.")
        elif not same[number]:
            told.append(f"The output differs with {SIDES[number]}: run the program without it.")
        elif runs[number].seconds < (1 - NOISE) * runs[best].seconds and (
            found := _where(runs[1], runs[number])
        ):
            best, kind = number, found
    if warning := next((device.warning for device in devices(run.statistics for run in runs)), ""):
        return " ".join([*told, f"{warning}, so no time here is for or against an option."])
    if best == 1:
        return " ".join([*told, f"{ONCE}, and no time shows that an option saves time."])
    saved = 1 - runs[best].seconds / runs[1].seconds
    told.append(
        f"{ONCE}: `mgpu-rt run {SIDES[best]}` took {100 * saved:.0f} % less time, mostly in "
        f"{kind}. Use it only if {CONDITIONS[SIDES[best]]}, and if a second comparison agrees."
    )
    return " ".join(told)


def _where(before: Run, after: Run) -> str:
    """Returns the kind of calls that accounts for more than half of the saved time; returns "" if
    no kind accounts for this much. The options can save time only in registrations, waits and
    questions."""
    saved = 1e9 * (before.seconds - after.seconds)
    parts = _parts(before), _parts(after)
    less = {kind: parts[0][kind].ns - parts[1][kind].ns for kind in parts[0]}
    kind = max(less, key=lambda name: less[name])
    return kind if less[kind] > saved / 2 else ""
