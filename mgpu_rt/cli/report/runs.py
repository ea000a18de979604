"""The runs that a page is about: one, or before and after."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mgpu_rt.cli.errors import Problem
from mgpu_rt.cli.report import details, trace
from mgpu_rt.cli.report.details import Details
from mgpu_rt.cli.report.trace import Calls, Trace
from mgpu_rt.cli.stats import statistics as counted_files
from mgpu_rt.cli.stats.statistics import Counter, Statistics

HOW_TO_GET = "`mgpu-rt run --stats-json PATH --trace PATH -- PROGRAM` writes both kinds"


@dataclass(frozen=True)
class Run:
    """What is known of a run."""

    program: str
    statistics: Statistics
    details: Details
    trace: Trace | None
    sources: tuple[str, ...]  # what it was read from, in words

    @property
    def start(self) -> int | None:
        """Nanoseconds of HIP's own start, which each process pays once, in no call's time."""
        if self.statistics.start is not None or self.trace is None:
            return self.statistics.start
        return self.trace.start

    @property
    def is_stock(self) -> bool:
        """True if no cache was at work (MGPU_RT_CACHE=off)."""
        caches = self.statistics.caches.values()
        asked = "mgpuModuleLoad" in self.statistics.program
        return asked and bool(caches) and not any(c.hits or c.misses for c in caches)


def names(runs: Sequence[Run]) -> list[str]:
    """What the page calls the runs."""
    return ["before", "after"] if len(runs) == 2 else ["this run"]


# ---- of files ----

Contents = dict[str, Any]  # of JSON files, by path


def of_files(paths: Sequence[str]) -> list[Run]:
    """One run, or two. Raises Problem."""
    contents = {path: counted_files.load(path, HOW_TO_GET) for path in paths}
    traces = [{path: raw} for path, raw in contents.items() if _is_trace(raw)]
    statistics = [{path: raw} for path, raw in contents.items() if not _is_trace(raw)]
    for kind, found in (("statistics", statistics), ("trace", traces)):
        if len(found) > 2:
            raise Problem(
                f"{len(found)} {kind} files were named: name one, or two for before and after"
            )
    return [_run(*pair) for pair in _pairs(statistics, traces)]


def _is_trace(raw: Any) -> bool:
    return isinstance(raw, dict) and "traceEvents" in raw


def _pairs(left: list[Contents], right: list[Contents]) -> list[tuple[Contents, Contents]]:
    """Statistics with their trace: those of one process, else in their order, the last together."""
    count = max(len(left), len(right))
    left = [{}] * (count - len(left)) + left
    right = [{}] * (count - len(right)) + right
    if count == 2 and (_same_process(left[0], right[1]) or _same_process(left[1], right[0])):
        right.reverse()
    return list(zip(left, right, strict=True))


def _same_process(statistics: Contents, traces: Contents) -> bool:
    try:
        pids = {raw["process"]["pid"] for raw in statistics.values()}
        return any(event["pid"] in pids for raw in traces.values() for event in raw["traceEvents"])
    except (KeyError, TypeError):
        return False  # an earlier release's statistics, or what the readers will refuse


# ---- of a program ----


def of_program(command: Sequence[str], device: str) -> list[Run]:
    """Before and after. Raises Problem."""
    from mgpu_rt.cli.stats import runs

    found = runs.both(command, device, _read_folder, trace=True)
    words = shlex.join(command)
    return [
        replace(run, sources=(f"{words}, run with {name}",))
        for run, name in zip(found, runs.NAMES, strict=True)
    ]


def _read_folder(folder: Path) -> Run:
    """Of all processes of a run."""
    statistics, traces = (
        {str(path): counted_files.load(path, HOW_TO_GET) for path in sorted(folder.glob(pattern))}
        for pattern in (f"*{counted_files.ENDING}", "*.trace")
    )
    return _run(statistics, traces)


# ---- both ----


def _run(statistics: Contents, traces: Contents) -> Run:
    """Of the files of its processes."""
    read = trace.parse(traces) if traces else None
    each = {path: counted_files.parse(raw, path) for path, raw in statistics.items()}
    more = details.added(details.of(part, path) for path, part in each.items())
    if statistics or not read:
        counted = counted_files.added(each.values())
    else:
        counted = Statistics(_counters(read.program), _counters(read.driver), {})
    sources = (*statistics, *traces)
    names = [process.program for process in more.processes] + (read.programs if read else [])
    return Run(names[0] if names else Path(sources[0]).stem, counted, more, read, sources)


def _counters(layer: Mapping[str, Calls]) -> dict[str, Counter]:
    return {name: calls.counter() for name, calls in layer.items()}
