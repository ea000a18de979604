"""A statistics file for people: the tables of `mgpu-rt run --stats`, as the library rendered them
(csrc/runtime/telemetry/recording/statistics.c), then copies, modules, caches and memory."""

from __future__ import annotations

from collections.abc import Iterator

from mgpu_rt._cli.stats.statistics import Cache, Module, Process, Statistics
from mgpu_rt._text import columns, printable, shortened, shown

NONE = "–"  # what was not counted
_WIDEST = 800  # letters of a line; the library's names are shorter
_NOT_RENDERED = (
    "mgpu_rt: an older release wrote this file, without tables of calls: --json shows the counts"
)


def lines(statistics: Statistics) -> Iterator[str]:
    """Everything that a file says."""
    for line in statistics.rendered.splitlines() or [_NOT_RENDERED]:
        yield shortened(printable(line), _WIDEST)
    if statistics.process:
        yield ""
        yield _process(statistics.process)
    if statistics.copies:
        yield ""
        yield from columns([("copies", "calls", "bytes"), *_copies(statistics)])
    if statistics.modules:
        yield ""
        head = ("image", "bytes", "loads", "by the driver", "kernels")
        yield from columns([head, *map(_module, statistics.modules)])
    yield ""
    yield from columns([("cache", "hits", "misses", "rate", "given back"), *_caches(statistics)])
    if statistics.memory:
        yield ""
        yield statistics.memory.rstrip()


def _process(process: Process) -> str:
    rank = "" if process.rank is None else f", rank {process.rank}"
    who = f"{shown(process.program)}, process {process.pid}{rank}"
    return f"{who}: {process.ending}, {process.seconds:.3f} s since its first call"


def _copies(statistics: Statistics) -> Iterator[tuple[str, ...]]:
    for way, copied in statistics.copies.items():
        counted = (str(copied.calls), str(copied.bytes)) if copied.calls else (NONE, NONE)
        yield (shown(way.replace("_", " ")), *counted)


def _module(module: Module) -> tuple[str, ...]:
    kernels = ", ".join(map(shown, module.kernels)) or NONE
    why = f" (loaded anew each time: {shown(module.why)})" if module.why else ""
    numbers = (module.bytes, module.loads, module.driver_loads)
    return (shown(module.image), *map(str, numbers), kernels + why)


def _caches(statistics: Statistics) -> Iterator[tuple[str, ...]]:
    for name, cache in statistics.caches.items():
        yield (shown(name), *cells(cache), str(cache.evictions) if _asked(cache) else NONE)


def _asked(cache: Cache) -> bool:
    """True if anything was counted of a cache."""
    return cache != Cache(0, 0, 0)


def cells(cache: Cache | None) -> tuple[str, str, str]:
    """Hits, misses and rate."""
    if cache is None or not _asked(cache):
        return NONE, NONE, NONE
    rate = f"{100 * cache.rate:.1f} %" if cache.rate is not None else NONE
    return str(cache.hits), str(cache.misses), rate
