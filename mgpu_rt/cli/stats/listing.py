"""A statistics file for people: the tables of `mgpu-rt run --stats`, then copies, modules, caches
and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mgpu_rt.cli.stats.statistics import Cache, Counter, Module, Process, Statistics, total
from mgpu_rt.text import columns, shown

NONE = "–"  # what was not counted
RULE = "------ ----------- ----------- --------- --------------------"


def lines(statistics: Statistics) -> Iterator[str]:
    """Everything that a file says."""
    yield from (f"mgpu_rt: {failure}" for failure in statistics.failures)
    yield from _calls("mgpu_rt: calls of the program", statistics.program)
    if statistics.driver or not statistics.overridden:
        yield from _calls("mgpu_rt: calls of the driver", statistics.driver)
    if statistics.uncounted:
        yield f"mgpu_rt: {statistics.uncounted}"
    if statistics.kernels:
        yield from _calls("mgpu_rt: launches of kernels", statistics.kernels, "kernel")
    yield from _start(statistics)
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


def _calls(title: str, counters: Mapping[str, Counter], what: str = "function") -> Iterator[str]:
    """The columns of `ltrace -c`, as csrc/runtime/recording/statistics.c prints them."""
    everything = total(counters.values())
    yield title
    yield f"% time     seconds  usecs/call     calls      {what}"
    yield RULE
    for name, counter in sorted(counters.items(), key=lambda item: -item[1].ns):
        part = 100 * counter.ns / everything.ns if everything.ns else 0.0
        each = counter.ns / 1e3 / counter.calls if counter.calls else 0.0
        times = f"{part:6.2f} {counter.ns / 1e9:11.6f} {each:11.2f}"
        yield f"{times} {counter.calls:9} {shown(name)}"
    yield RULE
    yield f"100.00 {everything.ns / 1e9:11.6f} {'':11} {everything.calls:9} total"


def _start(statistics: Statistics) -> Iterator[str]:
    """As csrc/runtime/recording/statistics.c prints it."""
    if statistics.graphs.summary:
        yield f"mgpu_rt: {statistics.graphs.summary}"
    if statistics.start is not None:
        seconds = statistics.start / 1e9
        yield f"mgpu_rt: HIP's start, paid once and in no time above: {seconds:.6f} s"
    if device := statistics.device:
        yield "mgpu_rt: on " + "; ".join(filter(None, (shown(device.description), device.warning)))


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
