"""Shows the statistics of one run, or of two runs, as tables with a row for each function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from mgpu_rt._cli.stats.statistics import (
    Cache,
    Counter,
    Module,
    Process,
    Statistics,
    devices,
    total,
)
from mgpu_rt._text import columns, printable, shown

# ---- the kinds of calls ----
#
# The runtime queries HIP before it takes a shortcut, because other code may have called HIP since
# the last call (docs/rule.md). A query does no work for the program, so the tables list queries
# separately.

#: The HIP functions by which the runtime queries HIP before a shortcut. An error code is a valid
#: result of a query.
QUESTIONS = (
    "hipEventQuery",
    "hipGetLastError",
    "hipMemGetAddressRange",
    "hipPeekAtLastError",
    "hipPointerGetAttribute",
    "hipPointerGetAttributes",
    "hipStreamGetDevice",
    "hipStreamGetFlags",
    "hipStreamQuery",
)

#: The driver's functions that only wait for the GPU. The library also calls these functions when
#: the program copies or frees memory.
WAITS = ("hipStreamSynchronize", "hipEventSynchronize", "hipDeviceSynchronize")

REGISTRATIONS = (
    "mgpuMemHostRegister",
    "mgpuMemHostRegisterMemRef",
    "mgpuMemHostUnregister",
    "mgpuMemHostUnregisterMemRef",
)

PURPOSE = (
    "The library asks the driver before it takes a shortcut: is the stream idle, does the "
    "program still own the block? MGPU_RT_EXCLUSIVE=on leaves out most of these questions."
)

GRAPHS = (
    "Launches of graphs are no calls, so the totals do not compare: `mgpu-rt compare --repeat 5` "
    "compares the times of whole runs."
)

Counted = TypeVar("Counted")


def work(calls: Mapping[str, Counted]) -> dict[str, Counted]:
    """Returns all calls except the queries."""
    return {name: counted for name, counted in calls.items() if name not in QUESTIONS}


def questions(calls: Mapping[str, Counted]) -> dict[str, Counted]:
    return {name: counted for name, counted in calls.items() if name in QUESTIONS}


def waits(driver: Mapping[str, Counter]) -> Counter:
    return total(driver[name] for name in WAITS if name in driver)


# ---- one run ----

NONE = "–"  # stands for a value that was not counted
_RULE = "------ ----------- ----------- --------- --------------------"


def of_one(statistics: Statistics) -> Iterator[str]:
    yield from _calls(statistics)
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
    yield from columns([("cache", "hits", "misses", "rate", "evicted"), *_caches(statistics)])
    if statistics.memory:
        yield ""
        yield statistics.memory.rstrip()


def _calls(statistics: Statistics) -> Iterator[str]:
    """Yields the lines that MGPU_RT_STATS=1 prints at exit (telemetry/recording/statistics.c)."""
    yield from (f"mgpu_rt: {failure}" for failure in statistics.failures)
    yield from _table("calls of the program", "function", statistics.program)
    if statistics.driver or not statistics.overridden:
        yield from _table("calls of the driver", "function", statistics.driver)
    if statistics.uncounted:
        yield f"mgpu_rt: {statistics.uncounted}"
    if statistics.kernels:
        yield from _table("launches of kernels", "kernel", statistics.kernels)
    if statistics.graphs.summary:
        yield f"mgpu_rt: {statistics.graphs.summary}"
    if statistics.registered:
        yield f"mgpu_rt: {statistics.registered}"
    if statistics.start is not None:
        yield f"mgpu_rt: HIP's start, once, not in the times above: {statistics.start / 1e9:.6f} s"
    if device := statistics.device:
        told = [shown(device.description), *filter(None, [device.warning])]
        yield f"mgpu_rt: on {'; '.join(told)}"
    yield from (f"mgpu_rt: {line}" for line in _other_calls(statistics))


def _other_calls(statistics: Statistics) -> Iterator[str]:
    if statistics.other_calls:
        yield f"calls of HIP by other code: {shown(statistics.other_calls)}"


def _table(title: str, what: str, calls: Mapping[str, Counter]) -> Iterator[str]:
    """Yields a table with the columns of `ltrace -c`."""
    whole = total(calls.values())
    yield f"mgpu_rt: {title}"
    yield f"% time     seconds  usecs/call     calls      {what}"
    yield _RULE
    for name, made in sorted(calls.items(), key=lambda item: -item[1].ns):
        share = 100 * made.ns / whole.ns if whole.ns else 0.0
        each = made.ns / 1e3 / made.calls if made.calls else 0.0
        yield f"{share:6.2f} {made.ns / 1e9:11.6f} {each:11.2f} {made.calls:9} {shown(name)}"
    yield _RULE
    yield f"100.00 {whole.ns / 1e9:11.6f} {'':11} {whole.calls:9} total"


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
    why = f" (loaded again each time: {shown(module.why)})" if module.why else ""
    numbers = (module.bytes, module.loads, module.driver_loads)
    return (shown(module.image), *map(str, numbers), kernels + why)


def _caches(statistics: Statistics) -> Iterator[tuple[str, ...]]:
    for name, cache in statistics.caches.items():
        yield (shown(name), *cells(cache), str(cache.evictions) if _asked(cache) else NONE)


def _asked(cache: Cache) -> bool:
    """Returns True if a count of the cache is not 0."""
    return cache != Cache(0, 0, 0)


def cells(cache: Cache | None) -> tuple[str, str, str]:
    if cache is None or not _asked(cache):
        return NONE, NONE, NONE
    rate = f"{100 * cache.rate:.1f} %" if cache.rate is not None else NONE
    return str(cache.hits), str(cache.misses), rate


# ---- two runs ----

Pair = tuple[Counter | None, Counter | None]


def ratio(before: Counter | None, after: Counter | None) -> float | None:
    """Returns the ratio of the times before and after; None if one of the times was not counted."""
    return before.ns / after.ns if before and after and before.ns and after.ns else None


def pairs(before: Mapping[str, Counter], after: Mapping[str, Counter]) -> dict[str, Pair]:
    """Returns the counters of both runs by function, ordered by the first run's time, longest
    first."""
    names = sorted({**before, **after}, key=lambda name: -(before.get(name) or after[name]).ns)
    return {name: (before.get(name), after.get(name)) for name in names}


def summed(counters: Mapping[str, Counter]) -> Counter | None:
    """Returns None if no call was counted."""
    return total(counters.values()) if counters else None


def comparable(runs: Iterable[Statistics]) -> bool:
    """Returns whether the sums over all calls compare. A failed call does no work, and a graph's
    launch stands for calls that are not counted."""
    return not any(run.failed or run.graphs.launches for run in runs)


def as_dict(before: Statistics, after: Statistics) -> dict[str, Any]:
    def layer(
        left: Mapping[str, Counter], right: Mapping[str, Counter], what: str = "functions"
    ) -> dict[str, Any]:
        counted = {name: _values(pair) for name, pair in pairs(left, right).items()}
        whole = _values((summed(left), summed(right)))
        return {what: counted, "total": whole if may_compare else {**whole, "ratio": None}}

    may_compare = comparable((before, after))

    return {
        "failed": {"before": _failed(before), "after": _failed(after)},
        "overridden": {"before": before.overridden, "after": after.overridden},
        "program": layer(before.program, after.program),
        "driver": layer(work(before.driver), work(after.driver)),
        "questions": layer(questions(before.driver), questions(after.driver)),
        "launches": layer(before.kernels, after.kernels, "kernels"),
        "start": {"before": before.start, "after": after.start},
        "device": {
            name: asdict(run.device) if run.device else None
            for name, run in (("before", before), ("after", after))
        },
        "other_calls": after.other_calls or None,
        "cache": {
            name: {
                "before": asdict(before.caches[name]) if name in before.caches else None,
                "after": asdict(after.caches[name]) if name in after.caches else None,
            }
            for name in {**before.caches, **after.caches}
        },
    }


def _failed(run: Statistics) -> list[dict[str, Any]]:
    return [{**asdict(failure), "calls": calls} for failure, calls in run.failed.items()]


def _values(pair: Pair) -> dict[str, Any]:
    before, after = (asdict(counter) if counter else None for counter in pair)
    return {"before": before, "after": after, "ratio": ratio(*pair)}


def of_two(names: tuple[str, str], before: Statistics, after: Statistics) -> Iterator[str]:
    runs = (before, after)
    for name, run in zip(("before", "after"), runs, strict=True):
        yield from (f"{name}: {failure}" for failure in run.failures)
    yield f"before: {printable(names[0])}"
    yield f"after:  {printable(names[1])}"
    yield from _devices(before, after)
    yield from _other_calls(after)
    if before.start is not None or after.start is not None:
        starts = (f"{run.start / 1e6:.3f}" if run.start is not None else NONE for run in runs)
        head = ("once, not in the times below", "ms before", "after")
        yield ""
        yield from right_aligned(head, [("HIP's start", *starts)])
    for title, left, right in (
        ("calls of the program", before.program, after.program),
        ("calls of the driver", work(before.driver), work(after.driver)),
        ("questions to the driver", questions(before.driver), questions(after.driver)),
        ("launches of kernels", before.kernels, after.kernels),
    ):
        if not left and not right:
            continue
        yield ""
        rows = [_row(name, pair) for name, pair in pairs(left, right).items()]
        whole = _row("total", (summed(left), summed(right)))
        rows.append(whole if comparable(runs) else (*whole[:-1], NONE))
        yield from right_aligned(
            (title, "calls before", "after", "ms before", "after", "ratio"), rows
        )
    yield ""
    cache_head = ("cache", "hits before", "misses", "rate", "hits after", "misses", "rate")
    caches = {**before.caches, **after.caches}
    rows = [
        (shown(name), *cells(before.caches.get(name)), *cells(after.caches.get(name)))
        for name in caches
    ]
    yield from right_aligned(cache_head, rows)
    if notes := _notes(before, after):
        yield ""
        yield from columns(notes)


def _devices(before: Statistics, after: Statistics) -> Iterator[str]:
    """Shows the devices of both runs; equal devices share one line."""
    found = devices((before, after))
    for device in found:
        yield f"on:     {shown(device.description)}"
    for warning in dict.fromkeys(device.warning for device in found if device.warning):
        yield f"        {warning}"


def _notes(before: Statistics, after: Statistics) -> list[tuple[str, str]]:
    told = []
    for name, run in (("before", before), ("after", after)):
        if run.uncounted:
            told.append(("note", f"{name}: {run.uncounted}"))
        if run.made.summary:
            told.append(("note", f"{name}: {run.made.summary}"))
    if before.graphs.launches or after.graphs.launches:
        told.append(("note", GRAPHS))
    return [*told, ("note", PURPOSE)] if questions(after.driver) else told


def _row(name: str, pair: Pair) -> tuple[str, ...]:
    calls = [str(counter.calls) if counter else NONE for counter in pair]
    times = [f"{counter.ns / 1e6:.3f}" if counter else NONE for counter in pair]
    return (shown(name), *calls, *times, factor(ratio(*pair)))


def factor(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def right_aligned(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    table = [head, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for first, *others in table:
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield f"{first:{widths[0]}}  {'  '.join(numbers)}".rstrip()
