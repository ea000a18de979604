"""Writes a measured time with only the digits that the measurements support."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DIGITS = 3  # at most, even if the samples hardly differ


@dataclass(frozen=True)
class Estimate:
    """A median and its error, which is the spread of the samples."""

    value: float
    error: float

    def text(self, unit: str) -> str:
        """Returns the value without the digits that the error makes meaningless, as in "3,600 µs".

        If the value does not exceed the error, returns an upper bound, as in "under 60 µs".
        """
        if self.value <= self.error:
            bound = max(self.value, 0) + self.error
            return f"under {_shown(*_rounded_up(bound))} {unit}" if bound else "nothing measurable"
        value = float(f"{self.value:.{DIGITS - 1}e}")
        places = DIGITS - 1 - math.floor(math.log10(value))
        if self.error > 0:  # a digit counts if the error is at most 5 of its place
            places = min(places, -math.ceil(math.log10(self.error / 5)))
        return f"{_shown(round(value, places), places)} {unit}"


def _rounded_up(value: float) -> tuple[float, int]:
    """Returns the number rounded up to one significant digit, and the decimal place of this
    digit."""
    places = -math.floor(math.log10(value))
    return math.ceil(value * 10.0**places) / 10.0**places, places


def _shown(value: float, places: int) -> str:
    return f"{value:,.{max(places, 0)}f}"


def each(one: Sequence[float], many: Sequence[float], count: int) -> Estimate:
    """Returns the cost of one step, from runs of a single step (`one`) and runs of `count` steps
    (`many`)."""
    value = statistics.median(many) - statistics.median(one)
    error = (_spread(one) + _spread(many)) / 2
    return Estimate(value / (count - 1), error / (count - 1))


def _spread(samples: Sequence[float]) -> float:
    return max(samples) - min(samples)
