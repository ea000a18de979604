"""The common part of the benchmarks of programs, models and graphs: figures, and rows of data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.setup.sides import TITLES
from bench.show.figures import Figure, median, ratios

#: For each side, the microseconds of an iteration in each turn.
Samples = Mapping[str, list[float]]


@dataclass(frozen=True)
class Ratio:
    """The ratio of two sides' times, and the bound that a GPU is expected to keep."""

    side: str
    base: str
    at_most: float | None = None
    at_least: float | None = None


def figures(title: str, samples: Samples, pairs: Iterable[Ratio], judged: bool) -> list[Figure]:
    """Returns the time of each side, and the ratios of the sides that were measured. The bounds of
    the ratios count only if ``judged``."""
    found = [median(f"{title}, {TITLES[side]}", taken, "µs") for side, taken in samples.items()]
    return found + [
        median(
            f"{title}, {TITLES[pair.side]} / {TITLES[pair.base]}",
            ratios(samples[pair.side], samples[pair.base]),
            "",
            at_most=pair.at_most if judged else None,
            at_least=pair.at_least if judged else None,
        )
        for pair in pairs
        if pair.side in samples and pair.base in samples
    ]


def rows(label: Mapping[str, Any], samples: Samples) -> list[dict[str, Any]]:
    """Returns a row of data for each side."""
    medians = {side: median("", taken, "") for side, taken in samples.items()}
    return [
        {**label, "side": side, "us": figure.value, "low": figure.low, "high": figure.high}
        for side, figure in medians.items()
    ]
