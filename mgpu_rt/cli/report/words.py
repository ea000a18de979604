"""Numbers as the page writes them."""

from __future__ import annotations

from mgpu_rt import text
from mgpu_rt.cli.stats.comparison import words as factor
from mgpu_rt.cli.stats.listing import NONE
from mgpu_rt.cli.stats.statistics import Cache, Counter

__all__ = [
    "NONE",
    "count",
    "factor",
    "per_call",
    "plural",
    "rate",
    "share",
    "size",
    "time",
]


def count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number of things: 1 call, 2 calls."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def time(ns: float | None) -> str:
    """Three digits that matter: 2.51 s, 446 ms, 9.8 µs."""
    if ns is None:
        return NONE
    if ns < 999.5:
        return f"{ns:.0f} ns"
    for unit in ("µs", "ms", "s"):
        ns /= 1000
        if ns < 999.5 or unit == "s":
            break
    return f"{ns:.{2 if ns < 9.995 else 1 if ns < 99.95 else 0}f} {unit}"


def per_call(counter: Counter | None) -> float | None:
    """Nanoseconds."""
    return counter.ns / counter.calls if counter and counter.calls else None


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NONE


def rate(cache: Cache) -> str:
    """Hits of all that was asked."""
    return NONE if cache.rate is None else f"{100 * cache.rate:.1f} %"


def size(number: float | None) -> str:
    return NONE if number is None else text.size(number)
