"""Runs a program with stock's behaviour and with the cache."""

from __future__ import annotations

import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mgpu_rt._cli import child, executable, preload, source, terminal
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import LOST, Statistics, added, load, parse
from mgpu_rt._cli.stats.tables import factor


class Mode(NamedTuple):
    """A way to run a program. `variables` are added to the program's environment."""

    how: str  # for messages
    variables: dict[str, str]


STOCK = Mode("stock's behaviour (MGPU_RT_CACHE=off)", {"MGPU_RT_CACHE": "off"})


class Run(NamedTuple):
    """A run of the program, on one side of a comparison."""

    statistics: Statistics  # sum over all processes
    output: str = ""
    status: int = 0  # the program's exit status

    @property
    def seconds(self) -> float:
        """Returns the time from the begin of HIP's first start to the end of the last process."""
        processes = self.statistics.processes
        begins = [process.begin or 0 for process in processes]
        ends = [(p.begin or 0) / 1e9 + (p.seconds or 0) for p in processes]
        return max(ends) - min(begins) / 1e9 if processes else 0


def recorded(
    command: Sequence[str], environment: Mapping[str, str], **how: Any
) -> tuple[child.Ended, list[Statistics]]:
    """Runs a program. Returns how it ended, and the statistics of its processes. `how` are the
    arguments of child.run. Raises CommandError."""
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-") as folder:
        changes = {"MGPU_RT_STATS": os.path.join(folder, "%p")}
        ended = child.run(command, {**environment, **changes}, **how)
        files = sorted(Path(folder).iterdir())
        return ended, [parse(load(file, LOST)[0], file) for file in files]


def measure(
    command: Sequence[str], device: str, modes: Sequence[Mode], repeat: int
) -> list[list[Run]]:
    """Runs a program `repeat` times in each mode, in turn, and returns the runs of each mode. Its
    stdout goes to stderr, because stdout belongs to the caller. Raises CommandError."""
    executable.check(command[0])
    device = preload.announced(device)
    own = {"MGPU_RT_TRACE", *(name for mode in modes for name in mode.variables)}
    environment = {k: v for k, v in preload.environment(device).items() if k not in own}
    found: list[list[Run]] = [[] for _ in modes]
    total = repeat * len(modes)
    for number in range(total):
        mode = modes[number % len(modes)]
        terminal.step(f"run {number + 1} of {total}: {mode.how}")
        how = {"stdout": subprocess.PIPE, "errors": "surrogateescape"}  # keeps the bytes
        ended, files = recorded(command, {**environment, **mode.variables}, **how)
        sys.stderr.buffer.write(ended.stdout.encode(errors="surrogateescape"))
        sys.stderr.flush()
        who = f"with {mode.how} '{source.named(command[0])}'"
        again = command_in(mode, command, device)
        if mode is STOCK:  # which crashes at calls that the library accepts
            again += f", or with {source.command_to_run(command, device, 'check')}"
        executable.must_exit(ended, command[0], who, again)
        if not files:
            raise CommandError(f"unless a line above says why, {source.no_call(command[0])}")
        found[number % len(modes)].append(Run(added(files), ended.stdout, ended.status or 0))
    return found


def command_in(mode: Mode, command: Sequence[str], device: str) -> str:
    """Returns the command by which a user runs the program in a mode."""
    words = [f"{name}={shlex.quote(value)}" for name, value in mode.variables.items()]
    return " ".join([*words, source.command_to_run(command, device)])


# ---- `compare --repeat`: the times of several runs a side ----


def middle(runs: Sequence[Run]) -> Run:
    """Returns the run whose time is the median; of an even number, the lower median."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


#: If the sides are equal, their ranges do not overlap in 1 of 3 comparisons with two runs a side.
#: With four runs a side this is so in 1 of 35.
_FEWEST = 4


def sentence(before: Sequence[float], after: Sequence[float], warning: str = "") -> str:
    """Describes the seconds of both sides' runs. Names a gain only if no run of one side took as
    long as a run of the other. A warning, that no GPU was timed, replaces the gain."""
    medians = [statistics.median(side) for side in (before, after)]
    spreads = [
        f"{median:.3f} s ({min(side):.3f} to {max(side):.3f})"
        for median, side in zip(medians, (before, after), strict=True)
    ]
    told = (
        f"The tables show the median of {len(before)} runs a side. From HIP's start to the last "
        f"end: before {spreads[0]}, after {spreads[1]}"
    )
    if warning:
        return f"{told}: {warning}"
    if len(before) < _FEWEST:
        return f"{told}: too few runs to show a gain (--repeat 5)"
    if min(before) > max(after):
        return f"{told}: {factor(medians[0] / medians[1])} times as fast"
    if min(after) > max(before):
        return f"{told}: {factor(medians[1] / medians[0])} times as long"
    return f"{told}: the ranges overlap, so no gain is shown"


# ---- `compare --lazy`: has the option an effect? ----

NEVER_LAZY = (
    "--lazy postponed no synchronise, so these are the figures without it. docs/how-it-works.md "
    "(Waiting) says when it postpones one, and MGPU_RT_VERBOSE=1 names most reasons."
)

# ---- do the sides end alike, with equal output? ----

#: The address that LLVM's printMemref functions print.
_ADDRESS = re.compile(r"\bbase@ = 0x[0-9a-f]+")


def status_sentence(found: Sequence[Sequence[Run]], again: Sequence[str]) -> str:
    """Names exit statuses that differ; "" if they do not. `again` runs the program as each side. A
    main function of MLIR without a result leaves any status."""
    every = [sorted({run.status for run in runs}) for runs in found]
    if every[0] == every[-1]:
        return ""
    before, after = (" or ".join(map(str, statuses)) for statuses in every)
    return (
        f"The exit status is {before} before and {after} after, so one side may have stopped early "
        f"(no fault if main returns nothing): see why with `{again[not any(every[0])]}`"
    )


def print_alike(found: Sequence[Sequence[Run]]) -> bool:
    """Returns whether all runs print equal output, apart from the addresses of memrefs."""
    return len({_ADDRESS.sub("", run.output) for runs in found for run in runs}) == 1


def output_sentence(found: Sequence[Sequence[Run]], check: str, how: str) -> str:
    """Says whether all runs print equal output. `check` is the command that finds missing waits,
    and `how` names the second side's options."""
    if print_alike(found):
        return "All runs print equal output."
    has_graphs = any(run.statistics.graphs.launches for runs in found for run in runs)
    graphs = "A graph repeats no host code: docs/graphs.md says what you promise. "
    return (
        "The output differs. Unless the program prints times or addresses, first run "
        f"`{check}`: often a wait is missing. {f'If none is, leave out {how}. ' if how else ''}"
        f"{graphs if has_graphs else ''}If that does not help, docs/install.md (results "
        "differ) names other causes, and what to report."
    )
