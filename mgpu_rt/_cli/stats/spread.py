"""Compares the times of several runs a side: `mgpu-rt compare --repeat`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from mgpu_rt._cli.stats.runs import Run
from mgpu_rt._cli.stats.tables import factor


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


def sentence(before: Spread, after: Spread, runs: int) -> str:
    """Describes both sides. Names a gain only if no run of one side took as long as a run of the
    other."""
    told = f"{runs} runs a side, from the first call to the end: before {before}, after {after}"
    if before.least > after.most:
        return f"{told}: {factor(before.median / after.median)} times as fast"
    if after.least > before.most:
        return f"{told}: {factor(after.median / before.median)} times as long"
    return f"{told}: the ranges overlap, so no gain is shown"
