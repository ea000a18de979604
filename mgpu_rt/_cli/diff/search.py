"""Finds the first launch after which memory differs between the sides.

The first run of each side records hashes of all memory before and after each launch. Later runs
record the full content of launches with different results. The search ends at the first launch
whose difference exceeds the tolerance.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mgpu_rt import _interpreter
from mgpu_rt._cli.diff.elements import Allowed, Contents, Differing, differing
from mgpu_rt._cli.diff.runs import Notes, Pair, Side, key, matched, run
from mgpu_rt._images import image as images
from mgpu_rt._images import lines as line_tables
from mgpu_rt._text import shown
from mgpu_rt.runtime._folder import LaunchFolder
from mgpu_rt.runtime._recorded import RecordedLaunch

BATCH = 16  # launches that one more run of each side records completely
CROSSED = "crossed"


class Request(NamedTuple):
    """The user's request for a comparison. `out` is the folder for the recordings."""

    before: Side
    after: Side
    allowed: Allowed
    out: Path


def search(asked: Request, work: Path) -> tuple[list[str], int]:
    """Runs both sides as often as necessary, and records the runs in the folder `work`. Returns the
    lines that describe the findings, and the exit status. Raises CommandError, Damaged or
    OSError."""
    sides = asked.before, asked.after
    notes = [run(side, work / f"{side.name}-1") for side in sides]
    lines = [f"{side.name}: {' '.join(side.command)}, on {side.device}" for side in sides]
    pairs, parting = matched(notes[0].launches, notes[1].launches)
    candidates = [pair for pair in pairs if _written_otherwise(pair)]
    pair, elements, doubts = _first(asked, candidates, work)
    if pair:
        lines += _said(asked, pair, elements, len(notes[0].launches))
    lines += [*doubts, *([parting] if parting else [])]
    differs = bool(pair or parting or doubts)
    how = "equal" if not candidates else "equal within the tolerance"
    lines.append(f"{len(pairs)} launches compared" + (f": {how}" if not differs else ""))
    holes = _holes(notes, pairs)
    return lines + holes, 1 if differs else 2 if holes else 0


def _written_otherwise(pair: Pair) -> bool:
    """Returns True if the sides' results differ in a block to which a side wrote."""
    return any(
        mine.after != theirs.after and (mine.before != mine.after or theirs.before != theirs.after)
        for mine, theirs in zip(pair.before.blocks, pair.after.blocks, strict=True)
    )


def _first(
    asked: Request, candidates: Sequence[Pair], work: Path
) -> tuple[Pair | None, list[Differing], list[str]]:
    """Returns the first pair whose difference exceeds the tolerance, recorded completely, and the
    elements that differ. Also returns a line for each side whose memory changed since its first
    run."""
    size = 1 if asked.allowed.error is None else BATCH  # without a tolerance, each bit counts
    for begin in range(0, len(candidates), size):
        batch = candidates[begin : begin + size]
        runs = []
        for side, launches in (
            (asked.before, [pair.before for pair in batch]),
            (asked.after, [pair.after for pair in batch]),
        ):
            folder = work / f"{side.name}-{begin + 2}"
            runs.append({key(one): one for one in run(side, folder, map(key, launches)).launches})
        for pair in batch:
            mine, theirs = runs[0].get(key(pair.before)), runs[1].get(key(pair.after))
            doubts = [
                _differs_from_itself(side, pair)
                for side, was, now in (
                    (asked.before, pair.before, mine),
                    (asked.after, pair.after, theirs),
                )
                if now is None or _hashes(now) != _hashes(was)
            ]
            if mine is None or theirs is None or _sizes(mine) != _sizes(theirs):
                return None, [], doubts
            again = Pair(pair.number, mine, theirs)
            if (elements := [*_elements(again, asked.allowed)]) or doubts:
                return again if elements else None, elements, doubts
        for name in (asked.before.name, asked.after.name):
            shutil.rmtree(work / f"{name}-{begin + 2}")
    return None, [], []


def _hashes(launch: RecordedLaunch) -> list[tuple[str, str]]:
    return [(block.before, block.after) for block in launch.blocks]


def _sizes(launch: RecordedLaunch) -> list[int]:
    return [block.size for block in launch.blocks]


def _differs_from_itself(side: Side, pair: Pair) -> str:
    return (
        f"non-deterministic: {side.name}, launch {pair.number} ({_name(pair.before)}) has other "
        "memory in a second run"
    )


def _name(launch: RecordedLaunch) -> str:
    return f"launch {launch.number} of kernel {shown(launch.label)}"


def _elements(pair: Pair, allowed: Allowed) -> Iterator[Differing]:
    for at, (mine, theirs) in enumerate(zip(pair.before.blocks, pair.after.blocks, strict=True)):
        if mine.after != theirs.after:
            old = pair.before.content(mine.before), pair.after.content(theirs.before)
            new = pair.before.content(mine.after), pair.after.content(theirs.after)
            image = pair.before.content(pair.before.image)
            if found := differing(pair.before, image, at, Contents(old, new), allowed):
                yield found


# ---- the lines about the first different launch ----


def _said(asked: Request, pair: Pair, elements: list[Differing], total: int) -> Iterator[str]:
    before, after = pair.before, pair.after
    inputs = [*_inputs(pair)]
    crossed = replace(after, blocks=before.blocks, folders=after.folders + before.folders)
    if _alike(pair):
        crossed = replace(crossed, arguments=before.arguments)
    for name, launch in (("before", before), ("after", after), (CROSSED, crossed)):
        folder = LaunchFolder(asked.out / name)
        for content in {launch.image, *(n for b in launch.blocks for n in (b.before, b.after))}:
            folder.keep(launch.content(content))
        folder.finish(launch.as_json())
    yield f"launch {pair.number} of {total} is the first that differs: {_name(before)}"
    if place := line_tables.read(before.content(before.image)).of(before.kernel):
        yield f"  its kernel begins at {place}"
    if before.label != after.label:
        yield f"  after: {_name(after)}"
    geometry = [(one.grid, one.block, one.shared) for one in (before, after)]
    if geometry[0] != geometry[1]:
        yield "  grid, block, dynamic memory: {} before, {} after".format(*geometry)
    for element in elements:
        yield from (f"  {line}" for line in element.lines())
    if inputs:
        yield f"  before the launch these differ already: {', '.join(inputs)}"
    yield f"  {_verdict(asked, pair, bool(inputs), elements[0].dtype)}"
    yield f"recorded in {asked.out}: before, after, {CROSSED}, for `mgpu-rt replay`"


def _alike(pair: Pair) -> bool:
    """Returns whether the arguments of both kernels have equal layouts, so that the arguments'
    values can be compared."""
    forms = [[(a.block, a.offset, len(a.content)) for a in one.arguments] for one in pair[1:]]
    return forms[0] == forms[1]


def _inputs(pair: Pair) -> Iterator[str]:
    """Yields descriptions of the arguments that differ before the launch."""
    arguments = pair.before.arguments
    if _alike(pair):
        for number, (mine, theirs) in enumerate(zip(arguments, pair.after.arguments, strict=True)):
            if mine.block is None and mine.content != theirs.content:
                values = [side.content[::-1].hex() for side in (mine, theirs)]
                yield f"argument {number} (0x{values[0]} before, 0x{values[1]} after)"
    blocks = zip(pair.before.blocks, pair.after.blocks, strict=True)
    for at, (here, there) in enumerate(blocks):
        if here.before != there.before:
            number = next(n for n, argument in enumerate(arguments) if argument.block == at)
            yield f"the {here.size:,} bytes that argument {number} leads to"


def _verdict(asked: Request, pair: Pair, inputs_differ: bool, dtype: str) -> str:
    """Replays the second side's kernel on the first side's memory, and decides whether the kernel
    or the inputs cause the difference."""
    allowed, replayed = asked.allowed, "on the inputs before, the kernel after writes"
    given = {"tolerance": allowed.error, "dtype": allowed.dtype or dtype, "ulps": allowed.ulps}
    command = _interpreter.text_command(_CHILD, str(asked.out / CROSSED), json.dumps(given))
    environment = dict(asked.after.environment)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    crossed = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
    equal = "its inputs differ" if inputs_differ else "its inputs are equal"
    if crossed not in ("same", "differs"):
        return f"{equal}; the kernel after could not be replayed on the inputs before: {crossed}"
    if crossed == "same" and inputs_differ:
        return f"the cause is its inputs: {replayed} the results before"
    if crossed == "same":
        return (
            f"the cause is unknown: its inputs are equal, and {replayed} the results before; the "
            "kernel is not deterministic, or reads memory that no argument leads to"
        )
    if pair.before.image == pair.after.image and asked.before.device != asked.after.device:
        return f"the cause is the device: both sides have one image, and {replayed} other results"
    also = "its inputs differ too" if inputs_differ else equal
    return f"the cause is the kernel ({also}): {replayed} other results"


_CHILD = """
import json, sys
from mgpu_rt.runtime import Recording
from mgpu_rt._text import printable
try:
    done = Recording(sys.argv[1]).replay(**json.loads(sys.argv[2]))
    print("same" if done.same else "differs")
except (OSError, ValueError, RuntimeError, MemoryError) as error:
    print(printable(str(error) or "out of memory"))
"""


def _holes(notes: Sequence[Notes], pairs: Sequence[Pair]) -> list[str]:
    """Returns lines about data that was not compared."""
    lost = sum(one.lost for one in notes)
    lines = [f"not compared: {lost} launches that could not be recorded"] if lost else []
    unknown = [words for pair in pairs for one in pair[1:] for words in one.not_recorded]
    if unknown:
        lines.append(f"not compared, at {len(unknown)} places: {unknown[0]}")
    contents = {one.image: one for note in notes for one in note.launches}
    names: set[str] = set()
    for name, launch in contents.items():
        found = images.at(launch.content(name))
        for part in [found, *found.entries] if found else []:
            names |= {shown(variable.name) for variable in part.globals}
    if names:
        listed = ", ".join(f"'{name}'" for name in sorted(names)[:3])
        lines.append(f"not compared: variables that kernels can write, {listed}")
    if not any(pair.before.blocks for pair in pairs):
        lines.append("not compared: no argument of a launch leads to device memory")
    return lines
