"""Runs a program with stock's behaviour and with the cache; `compare --exclusive` adds two runs."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mgpu_rt._cli import child, executable, preload, source, terminal
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import ENDING, Counter, Statistics, added, devices, read, total
from mgpu_rt._cli.stats.tables import REGISTRATIONS, factor, questions, right_aligned, waits
from mgpu_rt._text import columns

NAMES = ("stock's behaviour (MGPU_RT_CACHE=off)", "mgpu_rt")

_BOTH: tuple[dict[str, str], ...] = ({"MGPU_RT_CACHE": "off"}, {})
_WORDS = (
    {"MGPU_RT_EXCLUSIVE": "on"},
    {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
)


class Run(NamedTuple):
    """A run of the program, on one side of a comparison."""

    statistics: Statistics  # sum over all processes
    output: str = ""  # if outputs are compared

    @property
    def seconds(self) -> float:
        """Returns the sum over all processes, each since its first call."""
        return sum(process.seconds for process in self.statistics.processes)


def recorded(
    command: Sequence[str], environment: Mapping[str, str], **how: Any
) -> tuple[child.Ended, list[Statistics]]:
    """Runs a program. Returns how it ended, and the statistics of its processes. `how` are the
    arguments of child.run. Raises CommandError."""
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-") as folder:
        changes = {"MGPU_RT_STATS": os.path.join(folder, f"%p{ENDING}")}
        ended = child.run(command, {**environment, **changes}, **how)
        return ended, [read(file) for file in sorted(Path(folder).glob(f"*{ENDING}"))]


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
    """Runs a program once for each side. Its stdout goes to stderr, because stdout belongs to the
    caller. The exit status does not count, because MLIR's main functions return no status."""
    executable.check(command[0])
    device = preload.announced(device)
    own = {"MGPU_RT_TRACE", *(name for side in sides for name in side)}
    environment = {k: v for k, v in preload.environment(device).items() if k not in own}
    stdout = subprocess.PIPE if keep_output else sys.stderr.fileno()
    found = []
    for number, side in enumerate(sides, 1):
        words = " ".join(f"{name}={value}" for name, value in side.items())
        mode = NAMES[_BOTH.index(side)] if side in _BOTH else words
        terminal.step(f"run {number} of {len(sides)}: {mode}")
        how = {"stdout": stdout, "errors": "surrogateescape"}  # equal texts have equal bytes
        ended, files = recorded(command, {**environment, **side}, **how)
        sys.stderr.buffer.write(ended.stdout.encode(errors="surrogateescape"))
        sys.stderr.flush()
        who = f"with {mode} '{source.named(command[0])}'"
        again = f"{words} {source.command_to_run(command, device)}".strip()
        child.must_exit(ended, command[0], who, again)
        if not files:
            raise CommandError(f"unless a line above says why, {source.no_call(command[0])}")
        found.append(Run(added(files), ended.stdout))
    return found


# ---- `compare --repeat`: the times of several runs a side ----


class Spread(NamedTuple):
    """The times of one side's runs, in seconds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.3f} s ({self.least:.3f} to {self.most:.3f})"


def spread(seconds: Sequence[float]) -> Spread:
    return Spread(statistics.median(seconds), min(seconds), max(seconds))


def middle(runs: Sequence[Run]) -> Run:
    """Returns the run whose time is the median; of an even number, the lower median."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


#: If the sides are equal, their ranges do not overlap in 1 of 3 comparisons with two runs a side.
#: With four runs a side this is so in 1 of 35.
_FEWEST = 4


def sentence(before: Spread, after: Spread, runs: int) -> str:
    """Describes both sides. Names a gain only if no run of one side took as long as a run of the
    other."""
    told = f"{runs} runs a side, from the first call to the end: before {before}, after {after}"
    if runs < _FEWEST:
        return f"{told}: too few runs to show a gain (--repeat 5)"
    if before.least > after.most:
        return f"{told}: {factor(before.median / after.median)} times as fast"
    if after.least > before.most:
        return f"{told}: {factor(after.median / before.median)} times as long"
    return f"{told}: the ranges overlap, so no gain is shown"


# ---- `compare --exclusive`: four runs of a program, and what the options gain ----

SIDES = ("stock", "mgpu_rt", "--exclusive", "--exclusive --lazy")

#: The conditions of the options, which the library cannot check.
CONDITIONS = (
    "Each side ran once. Use --exclusive only if nothing else in the process calls HIP, and --lazy "
    "only if no host code reads device memory through a pointer."
)


def _parts(run: Run) -> dict[str, Counter]:
    program, driver = run.statistics.program, run.statistics.driver
    return {
        "registrations": total(program[name] for name in REGISTRATIONS if name in program),
        "waits": waits(driver),
        "questions": total(questions(driver).values()),
    }


#: The address that LLVM's printMemref functions print.
_ADDRESS = re.compile(r"\bbase@ = 0x[0-9a-f]+")


def _same_output(runs: Sequence[Run]) -> list[bool]:
    """Returns, for each run, whether the run's output equals the first run's output, apart from the
    addresses of memrefs."""
    outputs = [_ADDRESS.sub("", run.output) for run in runs]
    return [output == outputs[0] for output in outputs]


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
    yield from columns([("note", _note(runs))])


def _note(runs: Sequence[Run]) -> str:
    """Returns which option changed the output or made calls fail, and the options' conditions."""
    same = _same_output(runs)
    if not same[1]:
        return (
            "Two runs without the options print different output, so nothing shows whether an "
            "option changes it. Let the program print no times or addresses."
        )
    told = []
    for number in (2, 3):
        if runs[number].statistics.failed:
            told.append(f"Calls failed with {SIDES[number]}: run the program without it.")
        elif not same[number]:
            told.append(f"The output differs with {SIDES[number]}: run the program without it.")
    warnings = {device.warning for device in devices(run.statistics for run in runs)} - {""}
    told += [f"{warning}, so no time here is for or against an option." for warning in warnings]
    return " ".join([*told, CONDITIONS])
