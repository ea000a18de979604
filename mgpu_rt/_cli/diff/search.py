"""Finds the first launch after which memory differs between the sides.

The first run of each side records hashes of all memory before and after each launch. Later runs
record the full content of launches with different results. The search ends at the first launch
whose difference exceeds the tolerance.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mgpu_rt._cli import child, replay, source
from mgpu_rt._cli.diff.runs import Pair, Side, key, matched, run
from mgpu_rt._images import image as images
from mgpu_rt._images import lines as line_tables
from mgpu_rt._text import shown
from mgpu_rt.runtime._difference import DTYPES, Difference, of_elements
from mgpu_rt.runtime._folder import LaunchFolder
from mgpu_rt.runtime._recorded import RecordedLaunch

BATCH = 16  # launches that one more run of each side records completely
CROSSED = "crossed"


class Allowed(NamedTuple):
    """The permitted differences: an absolute error, and a number of steps between floats. With a
    tolerance of None every bit must be equal."""

    tolerance: float | None
    ulps: int
    dtype: str


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
    lines = [
        f"{side.name}: {' '.join(map(source.named, side.command))}, on {side.device}"
        for side in sides
    ]
    pairs, parting = matched(notes[0][0], notes[1][0])
    candidates = [pair for pair in pairs if _written_otherwise(pair)]
    pair, elements, doubts = _first(asked, candidates, work)
    if pair:
        lines += _found(asked, pair, elements, len(notes[0][0]))
    lines += [*doubts, *([parting] if parting else [])]
    is_lost = any(is_lost for _, is_lost in notes)
    differs = bool(pair or doubts or (parting and not is_lost))
    how = "equal" if not candidates else "equal within the tolerance"
    ending = "" if differs or parting else f": {how}"
    lines.append(f"{len(pairs)} launch{'es' * (len(pairs) != 1)} compared{ending}")
    lost = ["not compared: launches that failed or could not be recorded"] if is_lost else []
    holes = [*lost, *_holes(pairs)]
    return lines + holes, 1 if differs else 2 if holes else 0


def _written_otherwise(pair: Pair) -> bool:
    """Returns True if the sides' results differ in a block to which a side wrote."""
    return any(
        mine.after != theirs.after and (mine.before != mine.after or theirs.before != theirs.after)
        for mine, theirs in zip(pair.before.blocks, pair.after.blocks, strict=True)
    )


def _first(
    asked: Request, candidates: Sequence[Pair], work: Path
) -> tuple[Pair | None, list[Difference], list[str]]:
    """Returns the first pair whose difference exceeds the tolerance, recorded completely, and the
    elements that differ. Also returns a line for each side whose memory changed since its first
    run."""
    exact = asked.allowed.tolerance is None and not asked.allowed.ulps
    size = 1 if exact else BATCH  # without a tolerance, each bit counts
    for begin in range(0, len(candidates), size):
        batch = candidates[begin : begin + size]
        runs = []
        for at, side in enumerate((asked.before, asked.after), 1):
            folder = work / f"{side.name}-2"
            shutil.rmtree(folder, ignore_errors=True)
            launches, _ = run(side, folder, [key(pair[at]) for pair in batch])
            runs.append({key(one): one for one in launches})
        for pair in batch:
            again = [runs[0].get(key(pair.before)), runs[1].get(key(pair.after))]
            doubts = [
                f"non-deterministic: {side.name}, launch {pair.number} ({_name(pair.before)}) has "
                "other memory in a second run"
                for side, was, now in zip((asked.before, asked.after), pair[1:], again, strict=True)
                if now is None or _hashes(now) != _hashes(was)
            ]
            if not all(again):
                return None, [], doubts
            same = Pair(pair.number, *again)  # type: ignore[arg-type]
            if (elements := _elements(same, asked.allowed)) or doubts:
                return same if elements else None, elements, doubts
    return None, [], []


def _hashes(launch: RecordedLaunch) -> list[tuple[str, str, int]]:
    return [(block.before, block.after, block.size) for block in launch.blocks]


def _name(launch: RecordedLaunch) -> str:
    return f"launch {launch.number} of kernel {shown(launch.label)}"


def _elements(pair: Pair, allowed: Allowed) -> list[Difference]:
    found = []
    for at, (mine, theirs) in enumerate(zip(pair.before.blocks, pair.after.blocks, strict=False)):
        if mine.after != theirs.after and mine.size == theirs.size:
            left = pair.before.content(mine.after), pair.after.content(theirs.after)
            found += differing(at, *left, allowed)
    return found


def differing(block: int, mine: bytes, theirs: bytes, allowed: Allowed) -> list[Difference]:
    """Returns the elements whose difference exceeds `allowed`."""
    width = int(DTYPES[allowed.dtype][1:])
    padded = (content + bytes(-len(mine) % width) for content in (mine, theirs))
    return of_elements(block, *padded, *allowed[::2], allowed.ulps)


# ---- the lines about the first different launch ----


def _found(asked: Request, pair: Pair, elements: list[Difference], total: int) -> Iterator[str]:
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
        yield f"  {element}"
        values = "the first: {} before, {} after".format(*element.values)
        yield f"  {values}; argument {_argument(before, element.block)} points to this memory"
    if inputs:
        yield f"  before the launch these differ already: {', '.join(inputs)}"
    yield f"  {_verdict(asked, pair, bool(inputs))}"
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
            yield f"the {here.size:,} bytes that argument {_argument(pair.before, at)} leads to"


def _argument(launch: RecordedLaunch, block: int) -> int:
    """Returns the number of the first argument that points to the block."""
    return next(at for at, argument in enumerate(launch.arguments) if argument.block == block)


def _verdict(asked: Request, pair: Pair, inputs_differ: bool) -> str:
    """Replays the second side's kernel on the first side's memory, and decides whether the kernel
    or the inputs cause the difference."""
    replayed = "on the inputs before, the kernel after writes"
    command = replay.command_of(str(asked.out / CROSSED), **asked.allowed._asdict())
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    ended = child.run(command, asked.after.environment, **pipes)
    equal = "its inputs differ" if inputs_differ else "its inputs are equal"
    if ended.status not in (0, 1):
        why = (ended.stderr.strip() or "it ended early").splitlines()[-1].removeprefix("mgpu-rt: ")
        return f"{equal}; the kernel after could not be replayed on the inputs before: {why}"
    if ended.status == 0 and inputs_differ:
        return f"the cause is its inputs: {replayed} the results before"
    if ended.status == 0:
        return (
            f"the cause is unknown: its inputs are equal, and {replayed} the results before; the "
            "kernel is not deterministic, or reads memory that no argument leads to"
        )
    if pair.before.image == pair.after.image and asked.before.device != asked.after.device:
        return f"the cause is the device: both sides have one image, and {replayed} other results"
    also = "its inputs differ too" if inputs_differ else equal
    return f"the cause is the kernel ({also}): {replayed} other results"


def _holes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yields lines about data that was not compared."""
    unknown = [words for pair in pairs for one in pair[1:] for words in one.not_recorded]
    if unknown:
        yield f"not compared, at {len(unknown)} places: {unknown[0]}"
    contents = {one.image: one for pair in pairs for one in pair[1:]}
    names: set[str] = set()
    for name, launch in contents.items():
        found = images.at(launch.content(name))
        for part in [found, *found.entries] if found else []:
            names |= {shown(variable.name) for variable in part.globals}
    if names:
        listed = ", ".join(f"'{name}'" for name in sorted(names)[:3])
        yield f"not compared: variables that kernels can write, {listed}"
    if not any(pair.before.blocks for pair in pairs):
        yield "not compared: no argument of a launch leads to device memory"
