"""Pairs the launches of two runs, and finds the point where the runs diverge."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mgpu_rt._cli.errors import CommandError
from mgpu_rt._text import shown
from mgpu_rt.runtime._manifest import RecordedLaunch

_MOST = 3  # names that a line shows

Launches = Sequence[RecordedLaunch]


@dataclass(frozen=True)
class Pair:
    """A launch of each side; `number` is the launch's position in the first side's run, from 1."""

    number: int
    before: RecordedLaunch
    after: RecordedLaunch


def matched(before: Launches, after: Launches, by: str) -> tuple[list[Pair], str, str]:
    """Pairs launches, in the order of the first side's run. Returns the pairs, a line about the
    divergence, and a line about names; each line may be empty. Launches after the divergence are in
    no pair, because their partners are unknown. Raises CommandError if names decide the pairs and
    the sides have no common kernel.

    `by` is name, position or auto. With auto, `matched` pairs by name if both sides launch equal
    kernels equally often. Otherwise, if the numbers of launches are equal, `matched` pairs by
    position. If one kernel changes, MLIR gives new numbers to all kernel names.
    """
    by_place = by == "position" or (by == "auto" and len(before) == len(after))
    if not by_place and not {launch.label for launch in before} & {
        launch.label for launch in after
    }:
        raise CommandError(
            f"the programs launch no kernels of equal names: {_names(before)} before, "
            f"{_names(after)} after; --match position ignores the names"
        )
    if by != "position" and _keys(before) == _keys(after):
        there = {(launch.label, launch.number): launch for launch in after}
        pairs = [
            Pair(number, launch, there[launch.label, launch.number])
            for number, launch in enumerate(before, 1)
        ]
        return (*_comparable(pairs, ""), "")
    common = min(len(before), len(after))
    others = (at for at in range(common) if before[at].label != after[at].label)
    differ = next(others, common)
    pairs = [Pair(at + 1, before[at], after[at]) for at in range(common)]
    if len(before) == len(after) and (by != "name" or differ == common):
        words = [shown(side[differ].label) for side in (before, after)] if differ < common else []
        said = (
            f"from launch {differ + 1} on names differ ({' and '.join(words)}): paired by position"
        )
        pairs, parting = _comparable(pairs, "")
        return pairs, parting, said if words and by == "auto" else ""
    if by != "position":
        pairs = pairs[:differ]
    return (*_comparable(pairs, _parting(before, after, len(pairs), by)), "")


def _keys(launches: Launches) -> Counter[tuple[str, int]]:
    return Counter((launch.label, launch.number) for launch in launches)


def _comparable(pairs: list[Pair], parting: str) -> tuple[list[Pair], str]:
    """Returns the pairs before the first pair whose launches have unequal numbers or sizes of
    blocks. Also returns the line about the divergence."""
    for at, pair in enumerate(pairs):
        sizes = [tuple(b.size for b in side.blocks) for side in (pair.before, pair.after)]
        if sizes[0] != sizes[1]:
            words = [f"{len(s)} of {sum(s):,} bytes" for s in sizes]
            return pairs[:at], (
                f"the runs diverge at launch {pair.number}, {shown(pair.before.label)}: its "
                f"arguments lead to other blocks of memory, {words[0]} before, {words[1]} after"
            )
    return pairs, parting


def _parting(before: Launches, after: Launches, at: int, by: str) -> str:
    """Describes the point where the runs diverge, and each side's launches at this point."""
    counts = f"{len(before)} launches before, {len(after)} after"
    if by == "position":
        return f"the runs diverge after launch {at}: {counts}"
    names = [[launch.label for launch in side[at:]] for side in (before, after)]
    opcodes = difflib.SequenceMatcher(None, *names, autojunk=False).get_opcodes()
    _, _, first, _, second = next(code for code in opcodes if code[0] != "equal")
    lengths = (first, second)
    how = (
        "fused?" if first > second > 0 else
        "split?" if second > first > 0 else
        "left out, or fused?" if first else "added, or split?"
    )  # fmt: skip
    if first == second:
        how = "another order, or other names"
    sides = [_names(side[at : at + n]) for side, n in zip((before, after), lengths, strict=True)]
    return (
        f"the runs diverge at launch {at + 1}: {sides[0]} before, {sides[1]} after ({how}); "
        f"{counts}; later launches are not compared"
    )


def _names(launches: Launches) -> str:
    names = [shown(launch.label) for launch in launches]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more or "nothing"
