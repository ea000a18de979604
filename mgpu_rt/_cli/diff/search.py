"""Finds the first launch after which memory differs between two programs, the sides.

The first run of each side records hashes of all memory before and after each launch. Later runs
record the full content of launches with different results. The search ends at the first launch
whose difference exceeds the tolerance.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mgpu_rt._cli import child, executable, overrides, preload, source, terminal
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._recordings import notes
from mgpu_rt._recordings.difference import Allowed, Difference, differences
from mgpu_rt._recordings.folder import LAUNCH, LaunchFolder
from mgpu_rt._recordings.launches import RecordedLaunch
from mgpu_rt._recordings.replay import Recording
from mgpu_rt._text import shown
from mgpu_rt.runtime._objects import Image

# With a tolerance, one more run of each side records this much memory completely, and at least this
# many launches. A run takes the program's time, so few runs are better than little memory.
ROOM, BATCH = 1 << 28, 16
WHOLE = "whole"  # the file that lists the launches to record completely

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


# ---- runs ----


def side(name: str, command: Sequence[str], device: str) -> Side:
    base = {name: value for name, value in os.environ.items() if name != "MGPU_RT_TRACE"}
    overrides.must_be_unset(base, "the calls that diff records")
    executable.check(command[0])
    return Side(name, command, device, preload.device_environment(device, base))


def run(side: Side, folder: Path, whole: Iterable[tuple[str, int]] = ()) -> tuple[Launches, bool]:
    """Runs a side, and records all launches in `folder`, with hashes of memory; or only the
    launches in `whole`, with all of their memory. Returns the launches, and whether a launch could
    not be recorded. The program's stdin is empty, because diff may run the program more than once.
    Raises CommandError or Damaged."""
    terminal.step(f"{'again' if whole else 'first run'}: {side.name}, on {side.device}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    settings: dict[str, object] = {"output": folder}
    if whole := [*whole]:
        settings["whole"] = folder / WHOLE  # the list may be too long for a variable
        (folder / WHOLE).write_text(json.dumps(whole))
    runtime = {"MGPU_RT_RUNTIME": overrides.variable([f"{notes.__name__}:Note"], settings)}
    streams = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr.fileno()}
    ended = child.run(side.command, preload.with_library(side.environment) | runtime, **streams)
    who = f"{side.name}, '{source.named(side.command[0])}'"
    again = source.command_to_run(side.command, side.device)
    executable.must_exit(ended, side.command[0], who, again)
    is_lost = (folder / notes.LOST).exists()
    found = [path for path in folder.iterdir() if path.is_dir()]
    if len(found) > 1:
        raise CommandError(
            f"{who} has {len(found)} processes that launch kernels: diff compares one; run one "
            "rank, or the process alone"
        )
    if not any(launch for path in found for launch in path.glob(f"[!.]*/{LAUNCH}")):
        how = "made through this library"
        how = "recorded: the lines above give the reason" if found or is_lost else how
        raise CommandError(f"{who} ended with status {ended.status}, and no launch was {how}")
    return Recording(found[0]).launches, is_lost


def _key(launch: RecordedLaunch) -> tuple[str, int]:
    """Returns the kernel's full name, and the launch's index among that kernel's launches."""
    return launch.label, launch.number


def matched(before: Launches, after: Launches) -> tuple[list[Pair], str]:
    """Pairs launches: by name if both sides launch equal kernels equally often, because threads may
    launch in any order; else by position. If one kernel changes, MLIR gives new numbers to all
    kernel names. The pairs are by position, too, if more launches then leave equal memory. If the
    numbers of launches differ, the pairs end at the first other name. Returns the pairs, and a line
    about the point where the runs diverge, if any.
    """
    there = {_key(launch): launch for launch in after}
    if sorted(map(_key, before)) == sorted(there):
        named = [there[_key(launch)] for launch in before]
        if _equal(before, named) >= _equal(before, after):
            after = named
    pairs: list[Pair] = []
    for pair in map(Pair, range(1, len(before) + 1), before, after):
        sizes = [[block.size for block in launch.blocks] for launch in pair[1:]]
        renamed = len(before) != len(after) and pair.before.label != pair.after.label
        if sizes[0] != sizes[1] or renamed:
            told = [
                f"{shown(launch.label)} with {sum(of):,} bytes"
                for launch, of in zip(pair[1:], sizes, strict=True)
            ]
            return pairs, f"the runs diverge at launch {pair.number}: {_two(told)}"
        pairs.append(pair)
    if len(before) == len(after):
        return pairs, ""
    counts = f"{len(before)} launches before, {len(after)} after"
    return pairs, f"the runs diverge after launch {len(pairs)}: {counts}"


def _equal(before: Launches, after: Launches) -> int:
    """Returns how many launches found equal memory and left equal memory."""
    pairs = zip(before, after, strict=True)
    return sum(_memory(one) == _memory(two) for one, two in pairs)


def _memory(launch: RecordedLaunch) -> list[tuple[int, str, str]]:
    return [(block.size, block.before, block.after) for block in launch.blocks]


def _two(words: Sequence[str]) -> str:
    return "{} before, {} after".format(*words)


# ---- the search ----


def search(sides: Sequence[Side], allowed: Allowed, work: Path) -> tuple[list[str], int]:
    """Runs both sides as often as necessary, and records the runs in the folder `work`. Returns the
    lines that describe the findings, and the exit status. Raises CommandError, Damaged or
    OSError."""
    notes = [run(side, work / side.name) for side in sides]
    lines = [
        f"{side.name}: {' '.join(map(source.named, side.command))}, on {side.device}"
        for side in sides
    ]
    pairs, parting = matched(notes[0][0], notes[1][0])
    candidates = [pair for pair in pairs if _written_otherwise(pair)]
    pair, elements = _first(sides, allowed, candidates, work)
    if pair:
        lines += _found(sides, allowed, work, pair, elements, len(notes[0][0]))
        if (earlier := candidates[0].number) < pair.number:
            lines.append(
                f"  launch {earlier} differs within the tolerance: a smaller one names its cause"
            )
    lines += [*_other_sizes(pairs)]
    lines += [parting] if parting else []
    is_lost = any(is_lost for _, is_lost in notes)
    differs = bool(pair or (parting and not is_lost))
    how = ": equal within the tolerance" if candidates else ": equal"
    is_told = differs or parting or not any(pair.before.blocks for pair in pairs)
    ending = "" if is_told else f"{how}; `mgpu-rt check` finds missing waits"
    lines.append(f"{len(pairs)} launch{'es' * (len(pairs) != 1)} compared{ending}")
    holes = [*_holes(pairs, is_lost)]
    return lines + holes, 1 if differs else 2 if holes else 0


def _written_otherwise(pair: Pair) -> bool:
    """Returns True if the sides' results differ in a block to which a side wrote."""
    return any(
        mine.after != theirs.after and (mine.before != mine.after or theirs.before != theirs.after)
        for mine, theirs in zip(pair.before.blocks, pair.after.blocks, strict=True)
    )


def _first(
    sides: Sequence[Side], allowed: Allowed, candidates: Sequence[Pair], work: Path
) -> tuple[Pair | None, list[Difference]]:
    """Returns the first pair whose difference exceeds the tolerance, recorded completely, and the
    elements that differ. Raises CommandError."""
    # Without a tolerance, each bit counts, so the first pair differs.
    batches = ([pair] for pair in candidates) if allowed.is_exact else _batches(candidates)
    for batch in batches:
        again = [_again(side, [p[at] for p in batch], work) for at, side in enumerate(sides, 1)]
        for pair in batch:
            found = (_repeated(*one) for one in zip(sides, pair[1:], again, strict=True))
            whole = Pair(pair.number, *found)
            if elements := _elements(whole, allowed):
                return whole, elements
    return None, []


def _batches(candidates: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yields the pairs that one run of each side records."""
    batch: list[Pair] = []
    used = 0
    for pair in candidates:
        size = 2 * sum(block.size for block in pair.before.blocks)  # before and after the launch
        if len(batch) >= BATCH and used + size > ROOM:
            yield batch
            batch, used = [], 0
        batch.append(pair)
        used += size
    if batch:
        yield batch


Again = Mapping[tuple[str, int], RecordedLaunch]


def _again(side: Side, launches: Launches, work: Path) -> Again:
    """Runs a side again, and returns the launches with all of their memory."""
    found, _ = run(side, work / f"{side.name}-again", [*map(_key, launches)])
    return {_key(launch): launch for launch in found}


def _repeated(side: Side, was: RecordedLaunch, again: Again) -> RecordedLaunch:
    """Returns a launch of a side's later run. Raises CommandError if the launch has other memory
    than in the first run."""
    now = again.get(_key(was))
    if now is None or _hashes(now) != _hashes(was):
        raise CommandError(
            f"{side.name} is not deterministic: {_name(was)} has other memory in a second run; "
            "mgpu-rt check finds races, but not that the host wrote nothing"
        )
    return now


def _hashes(launch: RecordedLaunch) -> list[tuple[str, str]]:
    return [(block.before, block.after) for block in launch.blocks]


def _name(launch: RecordedLaunch) -> str:
    return f"launch {launch.number} of kernel {shown(launch.label)}"


def _elements(pair: Pair, allowed: Allowed) -> list[Difference]:
    found = []
    for at, (mine, theirs) in enumerate(zip(pair.before.blocks, pair.after.blocks, strict=True)):
        if mine.after != theirs.after:
            left = pair.before.content(mine.after), pair.after.content(theirs.after)
            found += differences(at, *left, allowed)
    return found


# ---- the lines about the first different launch ----


def _found(
    sides: Sequence[Side],
    allowed: Allowed,
    work: Path,
    pair: Pair,
    elements: list[Difference],
    total: int,
) -> Iterator[str]:
    _, before, after = pair
    inputs = [*_inputs(pair)]
    yield f"launch {pair.number} of {total} is the first that differs: {_name(before)}"
    if before.label != after.label:
        yield f"  after: {_name(after)}"
    for element in elements:
        first = f"the first: {_two(element.values)}; " if any(element.values) else ""
        yield f"  {element}"
        yield f"  {first}argument {_argument(before, element.block)} points to this memory"
    if inputs:
        yield f"  before the launch these differ already: {', '.join(inputs)}"
    cause = _cause(pair, sides)
    _record_crossed(pair, work / "crossed")
    yield f"  {_verdict(sides[1], allowed, work / 'crossed', cause, bool(inputs))}"


def _cause(pair: Pair, sides: Sequence[Side]) -> str:
    """Names a cause for a launch's different results that is not its inputs."""
    is_one_image = pair.before.image == pair.after.image
    if _sizes(pair.before) != _sizes(pair.after):
        return "the launch's size" if is_one_image else "the kernel, or the launch's size"
    if is_one_image and sides[0].device != sides[1].device:
        return "the device: both sides have one image"
    return "the kernel"


def _sizes(launch: RecordedLaunch) -> dict[str, str]:
    """Returns the sizes of a launch as text, by their names."""
    grid, block = (" x ".join(map(str, sizes)) for sizes in (launch.grid, launch.block))
    return {"grid": grid, "block": block, "dynamic workgroup memory": f"{launch.shared:,} bytes"}


def _other_sizes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Says how many launches have other sizes, and describes the first. Their results may be equal
    although one side writes out of bounds."""
    others = [pair for pair in pairs if _sizes(pair.before) != _sizes(pair.after)]
    if others:
        there = _sizes(others[0].after)
        both = ((name, (size, there[name])) for name, size in _sizes(others[0].before).items())
        told = [f"{name} {_two(sizes)}" for name, sizes in both if sizes[0] != sizes[1]]
        count = f"{len(others)} of {len(pairs)} launches {'have' if len(others) > 1 else 'has'}"
        yield f"{count} another size, first {_name(others[0].before)}: {', '.join(told)}"


def _alike(pair: Pair) -> bool:
    """Returns whether the arguments of both kernels have equal layouts, so that the arguments'
    values can be compared."""
    forms = [[(a.block, a.offset, len(a.content)) for a in one.arguments] for one in pair[1:]]
    return forms[0] == forms[1]


def _inputs(pair: Pair) -> Iterator[str]:
    _, before, after = pair
    values = zip(before.arguments, after.arguments, strict=True) if _alike(pair) else ()
    for number, (mine, theirs) in enumerate(values):
        if mine.block is None and mine.content != theirs.content:
            told = [f"0x{argument.content[::-1].hex()}" for argument in (mine, theirs)]
            yield f"argument {number} ({_two(told)})"
    for at, (here, there) in enumerate(zip(before.blocks, after.blocks, strict=True)):
        if here.before != there.before:
            yield f"the {here.size:,} bytes that argument {_argument(before, at)} leads to"


def _argument(launch: RecordedLaunch, block: int) -> int:
    return next(at for at, argument in enumerate(launch.arguments) if argument.block == block)


def _record_crossed(pair: Pair, path: Path) -> None:
    """Records the second side's launch with the first side's memory."""
    _, before, after = pair
    arguments = before.arguments if _alike(pair) else after.arguments
    folder = LaunchFolder(path)
    folder.keep(after.content(after.image))
    for name in {name for block in before.blocks for name in (block.before, block.after)}:
        folder.keep(before.content(name))
    folder.finish(replace(after, blocks=before.blocks, arguments=arguments).as_json())


def _verdict(after: Side, allowed: Allowed, crossed: Path, cause: str, inputs_differ: bool) -> str:
    """Replays the second side's kernel on the first side's memory. Decides whether the inputs cause
    the difference, or the kernel or device in `cause`."""
    replayed = "on the inputs before, the kernel after writes"
    given = allowed._asdict().items()
    words = [f"--{name}={value}" for name, value in given if value is not None]
    command = [*preload.this_command(), "replay", *words, str(crossed)]
    ended = child.run(command, after.environment, **child.PIPES)
    equal = "the results before" if allowed.is_exact else "the results before, within the tolerance"
    inputs = "its inputs differ too" if inputs_differ else "its inputs are equal"
    if ended.status == 1:
        return f"the cause is {cause} ({inputs}): {replayed} other results"
    if ended.status != 0:
        why = (ended.stderr.strip() or "it ended early").splitlines()[-1].removeprefix("mgpu-rt: ")
        return f"{inputs}; the kernel after could not be replayed on the inputs before: {why}"
    if inputs_differ:
        return f"the cause is its inputs: {replayed} {equal}"
    return (
        f"the cause is unknown: {inputs}, and {replayed} {equal}; the kernel is not "
        "deterministic, or reads memory that no argument leads to"
    )


def _holes(pairs: Sequence[Pair], is_lost: bool) -> Iterator[str]:
    launches = [launch for pair in pairs for launch in pair[1:]]
    if is_lost:
        yield "not compared: launches that failed or could not be recorded"
    one_of_each = {launch.image: launch for launch in launches}
    images = {name: Image(launch.content(name)) for name, launch in one_of_each.items()}
    unknown: list[str] = []
    for launch in launches:
        kernel = images[launch.image].kernels.get(launch.kernel)
        unknown += launch.unrecorded((kernel and kernel.parameters) or ())
    if unknown:
        yield f"not compared, at {len(unknown)} places: {unknown[0]}"
    described = [image.description for image in images.values() if image.description]
    parts = [part for description in described for part in description.parts]
    if names := {shown(variable.name) for part in parts for variable in part.globals}:
        listed = ", ".join(f"'{name}'" for name in sorted(names)[:3])
        yield f"not compared: variables that kernels can write, {listed}"
    if pairs and not any(pair.before.blocks for pair in pairs):
        yield "not compared: no argument of a launch leads to device memory"
