"""The runs that the report page shows, and the form of the page's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mgpu_rt._cli.stats.statistics import Module, Process, Statistics, added
from mgpu_rt._cli.stats.tables import NONE
from mgpu_rt._text import size as text_size


class Side(NamedTuple):
    """A run that the page shows, under a name such as "before"."""

    name: str
    files: tuple[Statistics, ...]  # one for each process
    statistics: Statistics  # their sum
    source: str  # the path of the run's file, or its command line

    @property
    def failed(self) -> bool:
        return bool(self.statistics.failed)

    @property
    def processes(self) -> list[Process]:
        return [file.process for file in self.files if file.process]

    @property
    def modules(self) -> list[Module]:
        return [module for file in self.files for module in file.modules]

    @property
    def is_stock(self) -> bool:
        """Returns True if modules were loaded and no cache counted a hit or a miss, as with
        MGPU_RT_CACHE=off."""
        caches = self.statistics.caches.values()
        asked = "mgpuModuleLoad" in self.statistics.program
        return asked and bool(caches) and not any(c.hits or c.misses for c in caches)


def side(name: str, files: Sequence[Statistics], source: str) -> Side:
    return Side(name, (*files,), files[0] if len(files) == 1 else added(files), source)


# ---- numbers ----


def count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Formats a count with its noun: 1 call, 2 calls."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(ns: float | None) -> str:
    """Formats a time with three significant digits: 2.51 s, 446 ms, 9.8 µs."""
    if ns is None:
        return NONE
    if ns < 999.5:
        return f"{ns:.0f} ns"
    for unit in ("µs", "ms", "s"):
        ns /= 1000
        if ns < 999.5 or unit == "s":
            break
    return f"{ns:.{2 if ns < 9.995 else 1 if ns < 99.95 else 0}f} {unit}"


def size(number: float | None) -> str:
    return NONE if number is None else text_size(number)


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NONE
