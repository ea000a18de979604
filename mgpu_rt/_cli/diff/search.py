"""Finds the first launch after which memory differs between the sides.

The first runs of both sides record hashes of all memory before and after each launch. Later runs
record the full content of launches with different results. The search ends at the first launch
whose difference exceeds the tolerance.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mgpu_rt import _interpreter
from mgpu_rt._cli.diff.elements import Allowed, Contents, Differing, differing
from mgpu_rt._cli.diff.matching import Pair, matched
from mgpu_rt._cli.diff.runs import Notes, Side, key, run
from mgpu_rt._images import image as images
from mgpu_rt._images import lines as line_tables
from mgpu_rt._text import shown
from mgpu_rt.runtime._folder import BLOBS, Folder
from mgpu_rt.runtime._manifest import RecordedLaunch, line_of
from mgpu_rt.runtime._replay import Recording

ROOM, MOST = 1 << 30, 256  # the most bytes and launches of a batch of several launches
_MOST = 3  # variables that a line names
CROSSED = "crossed"


@dataclass(frozen=True)
class Request:
    """The user's request for a comparison. `sample` is the parameter of Buffer.sha256. `out` is the
    folder for the recordings."""

    before: Side
    after: Side
    allowed: Allowed
    match: str
    sample: int
    repeat: bool
    out: Path


@dataclass(frozen=True)
class Answer:
    """The lines that describe the findings, and the command's exit status."""

    lines: list[str]
    status: int


@dataclass(frozen=True)
class _Found:
    """A pair of launches with different results, recorded completely."""

    pair: Pair
    recordings: tuple[Recording, Recording]
    elements: list[Differing]


def search(asked: Request, work: Path) -> Answer:
    """Runs both sides as often as necessary, and records the runs in the folder `work`. Raises
    CommandError, Damaged or OSError."""
    sides = asked.before, asked.after
    notes = [run(side, work / f"{side.name}-1", asked.sample) for side in sides]
    lines = [str(side) for side in sides]
    unstable = []
    if asked.repeat:
        for side, first in zip(sides, notes, strict=True):
            again = run(side, work / f"{side.name}-again", asked.sample)
            unstable += _unstable(side, first, again)
    pairs, parting, names = matched(notes[0].launches, notes[1].launches, asked.match)
    candidates = [pair for pair in pairs if any(_written_otherwise(pair))]
    found, doubts = _first(asked, candidates, work)
    lines += [names] if names else []
    lines += unstable + doubts
    if found:
        lines += _said(asked, found, len(notes[0].launches))
    lines += [parting] if parting else []
    holes = _holes(notes, pairs)
    if not found and not parting and not unstable and not doubts:
        how = "equal" if not candidates else "equal within the tolerance"
        lines.append(f"{len(pairs)} launches compared: {how}")
    else:
        lines.append(f"{len(pairs)} launches compared")
    lines += holes + _sampled(asked, pairs)
    differs = found or parting or unstable or doubts
    return Answer(lines, 1 if differs else 2 if holes else 0)


def _written_otherwise(pair: Pair) -> Iterator[bool]:
    """Yields a bool for each block: True if a side wrote to the block and the sides' results
    differ."""
    for mine, theirs in zip(pair.before.blocks, pair.after.blocks, strict=True):
        is_written = mine.before != mine.after or theirs.before != theirs.after
        yield is_written and mine.after != theirs.after


def _same_inputs(pair: Pair) -> bool:
    return not any(_inputs(pair))


def _inputs(pair: Pair) -> Iterator[str]:
    """Yields descriptions of the arguments that differ before the launch."""
    arguments = pair.before.arguments
    blocks = zip(pair.before.blocks, pair.after.blocks, strict=True)
    if _alike(pair):
        for number, (mine, theirs) in enumerate(zip(arguments, pair.after.arguments, strict=True)):
            if mine.block is None and mine.content != theirs.content:
                values = [side.content[::-1].hex() for side in (mine, theirs)]
                yield f"argument {number} (0x{values[0]} before, 0x{values[1]} after)"
    for at, (here, there) in enumerate(blocks):
        if here.before != there.before:
            number = next(n for n, argument in enumerate(arguments) if argument.block == at)
            yield f"the {here.size:,} bytes that argument {number} leads to"


def _alike(pair: Pair) -> bool:
    """Returns whether the arguments of both kernels have equal layouts, so that the arguments'
    values can be compared."""
    forms = [
        [(a.block, a.offset, len(a.content)) for a in launch.arguments]
        for launch in (pair.before, pair.after)
    ]
    return forms[0] == forms[1]


def _unstable(side: Side, first: Notes, again: Notes) -> list[str]:
    """Returns a line if two runs of one side differ: in the results of a launch with equal inputs,
    or in the sequence of launches."""
    pairs, parting, _ = matched(first.launches, again.launches, "name")
    for pair in pairs:
        if _same_inputs(pair) and any(_written_otherwise(pair)):
            return [_differs_from_itself(side, pair)]
    words = f"non-deterministic: {side.name}, two runs differ: {parting}"
    return [words] if parting else []


def _differs_from_itself(side: Side, pair: Pair) -> str:
    return (
        f"non-deterministic: {side.name}, launch {pair.number} ({_name(pair.before)}) writes "
        "other results in a second run, from equal inputs"
    )


def _name(launch: RecordedLaunch) -> str:
    return f"launch {launch.number} of kernel {shown(launch.label)}"


def _first(
    asked: Request, candidates: Sequence[Pair], work: Path
) -> tuple[_Found | None, list[str]]:
    """Returns the first launch whose difference exceeds the tolerance, if any. Also returns a line
    for each side whose results changed since the side's first run."""
    for number, batch in enumerate(_batches(candidates), 2):
        runs = [
            run(side, work / f"{side.name}-{number}", asked.sample, map(key, launches))
            for side, launches in (
                (asked.before, [pair.before for pair in batch]),
                (asked.after, [pair.after for pair in batch]),
            )
        ]
        there = [{key(launch): launch for launch in notes.launches} for notes in runs]
        for pair in batch:
            mine, theirs = there[0].get(key(pair.before)), there[1].get(key(pair.after))
            for side, was, now in (
                (asked.before, pair.before, mine),
                (asked.after, pair.after, theirs),
            ):
                if now is None or _sizes(now) != _sizes(was):
                    return None, [_differs_from_itself(side, pair)]
            assert mine is not None and theirs is not None
            again = Pair(pair.number, mine, theirs)
            found = _Found(again, (runs[0].recording, runs[1].recording), [])
            found.elements.extend(_elements(found, asked.allowed))
            if found.elements:
                return found, [*_changed(asked, pair, again)]
            if asked.allowed.error is None:  # then each bit counts, and one differs
                return None, [*_changed(asked, pair, again)]
        for notes in runs:
            shutil.rmtree(notes.recording.folder.parent)
    return None, []


def _batches(candidates: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    """Yields batches of launches. The first batch is a single launch, because the first launch
    nearly always differs. ROOM and MOST limit the later batches."""
    yield from (candidates[:1],) if candidates else ()
    batch: list[Pair] = []
    room = 0
    for pair in candidates[1:]:
        size = 4 * sum(_sizes(pair.before))
        if batch and (room + size > ROOM or len(batch) == MOST):
            yield batch
            batch, room = [], 0
        batch, room = [*batch, pair], room + size
    if batch:
        yield batch


def _sizes(launch: RecordedLaunch) -> list[int]:
    return [block.size for block in launch.blocks]


def _changed(asked: Request, was: Pair, now: Pair) -> Iterator[str]:
    """Compares a launch with the first run of each side. Yields a line for each side whose memory
    before or after the launch has changed."""
    for side, mine, then in (
        (asked.before, now.before, was.before),
        (asked.after, now.after, was.after),
    ):
        hashes = [(b.before, b.after) for b in mine.blocks if not _is_sampled(asked, b.size)]
        if hashes != [(b.before, b.after) for b in then.blocks if not _is_sampled(asked, b.size)]:
            yield _differs_from_itself(side, was)


def _is_sampled(asked: Request, size: int) -> bool:
    return 0 < asked.sample < size


def _elements(found: _Found, allowed: Allowed) -> list[Differing]:
    """Returns the elements that differ in each block."""
    pair, (before, after) = found.pair, found.recordings
    image, listed = before.blob(pair.before.image), []
    for at, (mine, theirs) in enumerate(zip(pair.before.blocks, pair.after.blocks, strict=True)):
        if mine.after == theirs.after:
            continue
        held = Contents(
            (before.blob(mine.before), after.blob(theirs.before)),
            (before.blob(mine.after), after.blob(theirs.after)),
        )
        one = differing(pair.before, image, at, held, allowed)
        listed += [one] if one else []
    return listed


# ---- the lines about the first different launch ----


def _said(asked: Request, found: _Found, total: int) -> list[str]:
    pair, (before, after) = found.pair, found.recordings
    inputs = [*_inputs(pair)]
    _write(asked.out / "before", pair.before, before)
    _write(asked.out / "after", pair.after, after)
    crossed = replace(pair.after, blocks=pair.before.blocks)
    if _alike(pair):
        crossed = replace(crossed, arguments=pair.before.arguments)
    _write(asked.out / CROSSED, crossed, after, before)
    lines = [f"launch {pair.number} of {total} is the first that differs: {_name(pair.before)}"]
    if place := line_tables.read(before.blob(pair.before.image)).of(pair.before.kernel):
        lines.append(f"  its kernel begins at {place}")
    if pair.before.label != pair.after.label:
        lines.append(f"  after: {_name(pair.after)}")
    geometry = [(one.grid, one.block, one.shared) for one in (pair.before, pair.after)]
    if geometry[0] != geometry[1]:
        lines.append("  grid, block, dynamic memory: {} before, {} after".format(*geometry))
    for element in found.elements:
        lines += [f"  {line}" for line in element.lines()]
    if inputs:
        lines.append(f"  before the launch these differ already: {', '.join(inputs)}")
    lines.append(f"  {_verdict(asked, pair, bool(inputs), found.elements[0].dtype)}")
    return [*lines, f"recorded in {asked.out}: before, after, {CROSSED}, for `mgpu-rt replay`"]


def _write(path: Path, launch: RecordedLaunch, *sources: Recording) -> None:
    """Writes a recording of one launch; copies the blobs from `sources`."""
    names = {launch.image, *(n for b in launch.blocks for n in (b.before, b.after))}
    with Folder(path) as folder:
        for name in names:
            source = next(s for s in sources if (s.folder / BLOBS / name).exists())
            folder.keep(source.blob(name))
        folder.append(line_of(launch))


def _verdict(asked: Request, pair: Pair, inputs_differ: bool, dtype: str) -> str:
    """Replays the second side's kernel on the first side's memory, and decides whether the kernel
    or the inputs cause the difference."""
    replayed = "on the inputs before, the kernel after writes"
    crossed = _replayed(asked, dtype)
    if crossed not in ("same", "differs"):
        kept = "its inputs are equal" if not inputs_differ else "its inputs differ"
        return f"{kept}; the kernel after could not be replayed on the inputs before: {crossed}"
    if crossed == "same" and inputs_differ:
        return f"the cause is its inputs: {replayed} the results before"
    if crossed == "same":
        return (
            f"the cause is unknown: its inputs are equal, and {replayed} the results before; the "
            "kernel is not deterministic, or reads memory that no argument leads to"
        )
    if pair.before.image == pair.after.image and asked.before.device != asked.after.device:
        return f"the cause is the device: both sides have one image, and {replayed} other results"
    also = " (its inputs differ too)" if inputs_differ else " (its inputs are equal)"
    return f"the cause is the kernel{also}: {replayed} other results"


def _replayed(asked: Request, dtype: str) -> str:
    """Returns `same`, `differs`, or the reason why no replay was possible."""
    allowed = asked.allowed
    given = {"tolerance": allowed.error, "dtype": allowed.dtype or dtype, "ulps": allowed.ulps}
    command = _interpreter.text_command(_CHILD, str(asked.out / CROSSED), json.dumps(given))
    environment = dict(asked.after.environment)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]


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


# ---- the lines about data that was not compared ----


def _holes(notes: Sequence[Notes], pairs: Sequence[Pair]) -> list[str]:
    lost = sum(one.lost for one in notes)
    lines = [f"not compared: {lost} launches that could not be recorded"] if lost else []
    unknown = [words for p in pairs for one in (p.before, p.after) for words in one.not_recorded]
    if unknown:
        lines.append(f"not compared, at {len(unknown)} places: {unknown[0]}")
    if names := sorted({name for one in notes for name in _variables(one)}):
        listed = ", ".join(f"'{shown(name)}'" for name in names[:_MOST])
        lines.append(f"not compared: variables that kernels can write, {listed}")
    if not any(pair.before.blocks for pair in pairs):
        lines.append("not compared: no argument of a launch leads to device memory")
    return lines


def _variables(notes: Notes) -> Iterator[str]:
    """Yields the module variables that the run's kernels can write."""
    for name in {launch.image for launch in notes.launches}:
        found = images.at(notes.recording.blob(name))
        for part in [found, *found.entries] if found else []:
            yield from (variable.name for variable in part.globals)


def _sampled(asked: Request, pairs: Sequence[Pair]) -> list[str]:
    sizes = [b.size for p in pairs for b in p.before.blocks if _is_sampled(asked, b.size)]
    if not sizes:
        return []
    return [
        f"sampled: {len(sizes)} times a block of up to {max(sizes):,} bytes was compared in parts; "
        "--sample 0 compares all"
    ]
