"""A trace in as many steps as a chart can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from mgpu_rt.cli.report.trace import Level

BINS = 300


def places(duration: float, longest: float) -> int:
    """How many steps a run of `duration` takes where the longest takes all."""
    return max(1, round(BINS * duration / longest))


def sums(moments: Iterable[float], begin: float, duration: float, bins: int) -> list[int]:
    """How much had happened by the end of each step."""
    counts = [0] * bins
    for moment in moments:
        counts[_bin(moment, begin, duration, bins)] += 1
    return list(accumulate(counts))


def levels(
    memory: Sequence[Level], begin: float, duration: float, bins: int
) -> tuple[list[int], list[int]]:
    """The highest of each step: what the program held, and that with what was kept for it."""
    held, kept = [0] * bins, [0] * bins
    last, now = 0, (0, 0)
    for level in memory:
        at = _bin(level.moment, begin, duration, bins)
        for step in range(last + 1, at + 1):  # nothing has changed meanwhile
            held[step], kept[step] = now
        last, now = at, (level.allocated, level.allocated + level.cached)
        held[at], kept[at] = max(held[at], now[0]), max(kept[at], now[1])
    for step in range(last + 1, bins):
        held[step], kept[step] = now
    return held, kept


def _bin(moment: float, begin: float, duration: float, bins: int) -> int:
    place = int(bins * (moment - begin) / duration)
    return min(max(place, 0), bins - 1)
