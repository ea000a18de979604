"""Runs one side of a comparison (a program on a device), and pairs the launches of two sides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mgpu_rt._cli import child, executable, overrides, preload, source, terminal
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._text import shown
from mgpu_rt.runtime import _noting
from mgpu_rt.runtime._recorded import RecordedLaunch
from mgpu_rt.runtime._replay import Recording

Launches = Sequence[RecordedLaunch]


class Side(NamedTuple):
    """A program, its device, and the environment that selects the device but does not preload the
    library."""

    name: str  # before, after
    command: Sequence[str]
    device: str
    environment: Mapping[str, str]


class Pair(NamedTuple):
    """A launch of each side; `number` is the launch's position in the first side's run, from 1."""

    number: int
    before: RecordedLaunch
    after: RecordedLaunch


def key(launch: RecordedLaunch) -> tuple[str, int]:
    """Returns the kernel's full name, and the launch's index among that kernel's launches."""
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


def run(side: Side, folder: Path, whole: Iterable[tuple[str, int]] = ()) -> tuple[Launches, bool]:
    """Runs a side, and records launches in `folder`. With an empty `whole`, records all launches
    with hashes of memory. Otherwise records only the launches in `whole`, with all of their memory.
    Returns the launches, and whether a launch could not be recorded. The program's output goes to
    stderr. The program's stdin is empty, because diff may run the program more than once. Raises
    CommandError or Damaged."""
    terminal.step(f"{'again' if whole else 'first run'}: {side.name}, on {side.device}")
    folder.mkdir(mode=0o700)
    note = f"{_noting.__name__}:{_noting.Note.__name__}"
    settings = {"output": str(folder), "whole": json.dumps([*whole])}
    environment = {
        **preload.with_library(side.environment),
        "MGPU_RT_RUNTIME": overrides.variable([note], settings),
    }
    streams = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr.fileno()}
    ended = child.run(side.command, environment, **streams)
    status = ended.status
    if ended.interrupted:
        raise KeyboardInterrupt
    who = f"{side.name}, '{source.named(side.command[0])}'"
    if end := child.signal_name(status):
        raise CommandError(
            f"{who} was ended by {end}, so there is nothing to compare: see why with "
            f"mgpu-rt run --device {side.device} -- {side.command[0]}"
            f"{child.reason_in_images(side.command[0], status)}"
        )
    found = [path for path in folder.iterdir() if path.is_dir()]
    is_lost = (folder / _noting.LOST).exists()
    if len(found) > 1:
        raise CommandError(
            f"{who} has {len(found)} processes that launch kernels: diff compares one; run one "
            "rank, or the process alone"
        )
    if not found or not any(not path.name.startswith(".") for path in found[0].iterdir()):
        how = "recorded: the lines above give the reason"
        how = how if found or is_lost else "made through this library"
        raise CommandError(f"{who} ended with status {status}, and no launch was {how}")
    return Recording(found[0]).launches, is_lost


def matched(before: Launches, after: Launches) -> tuple[list[Pair], str]:
    """Pairs launches: by name if both sides launch equal kernels equally often, because threads may
    launch in any order; else by position. If the numbers of launches differ, the pairs end at the
    first other name. Returns the pairs, and a line about the point where the runs diverge, if any.

    If one kernel changes, MLIR gives new numbers to all kernel names.
    """
    there = {key(launch): launch for launch in after}
    if sorted(map(key, before)) == sorted(there):
        after = [there[key(launch)] for launch in before]
    pairs = [Pair(n, *pair) for n, pair in enumerate(zip(before, after, strict=False), 1)]
    for at, pair in enumerate(pairs):
        sizes = [[block.size for block in side.blocks] for side in pair[1:]]
        words = ""
        if len(before) != len(after) and pair.before.label != pair.after.label:
            words = f"{shown(pair.before.label)} before, {shown(pair.after.label)} after"
        elif sizes[0] != sizes[1]:
            blocks = [f"{len(each)} of {sum(each):,} bytes" for each in sizes]
            words = f"other blocks of memory, {blocks[0]} before, {blocks[1]} after"
        if words:
            return pairs[:at], f"the runs diverge at launch {pair.number}: {words}"
    if len(before) == len(after):
        return pairs, ""
    counts = f"{len(before)} launches before, {len(after)} after"
    return pairs, f"the runs diverge after launch {len(pairs)}: {counts}"
