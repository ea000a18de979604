"""A measured figure with its target, and the computation of one value from samples."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Prints the name of the current measurement.
Step = Callable[[str], None]


@dataclass(frozen=True)
class Figure:
    """One row of a table. `low` and `high` are the bounds of the middle 80 % of the samples."""

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Returns whether the target is met; None without a target."""
        if self.at_most is not None:
            return self.value <= self.at_most
        if self.at_least is not None:
            return self.value >= self.at_least
        return None

    @property
    def target(self) -> str:
        """The target in words; empty without a target."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return ""


@dataclass(frozen=True)
class Result:
    """The outcome of one benchmark: its figures, its device, and the method of the measurement."""

    name: str
    device: str
    method: str
    figures: list[Figure] = field(default_factory=list)
    on: str = "stub"  # the device's name
    #: The rows of data for plots and tables; each benchmark has its own columns.
    data: list[dict[str, Any]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Returns a key that no other result of the run uses."""
        return f"{self.name}-{self.on}"


def median(
    name: str,
    samples: Sequence[float],
    unit: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Figure:
    """Returns the median of the samples, with the spread from the tenth to the ninetieth
    percentile."""
    ordered = sorted(samples)
    tenth = len(ordered) // 10
    return Figure(
        name,
        statistics.median(ordered),
        unit,
        low=ordered[tenth],
        high=ordered[-1 - tenth],
        at_most=at_most,
        at_least=at_least,
    )


def ratios(samples: Sequence[float], base: Sequence[float]) -> list[float]:
    """Divides each sample by the base sample of the same turn, so that common disturbances
    cancel."""
    return [a / b for a, b in zip(samples, base, strict=True)]


def differences(samples: Sequence[float], base: Sequence[float]) -> list[float]:
    """Subtracts from each sample the base sample of the same round, so that common disturbances
    cancel."""
    return [a - b for a, b in zip(samples, base, strict=True)]
