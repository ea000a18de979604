"""Reads the page's inputs: trace files, statistics files, and the runs that these files
describe."""

from __future__ import annotations

import math
import shlex
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import (
    ENDING,
    Counter,
    Failure,
    Module,
    Process,
    Statistics,
    added,
    checked_count,
    checked_time,
    load,
    parse,
)
from mgpu_rt._cli.stats.statistics import HOW_TO_GET as HOW_TO_GET_STATISTICS

# ---- traces: what `mgpu-rt run --trace` writes ----

HOW_TO_GET_TRACE = "`mgpu-rt run --trace PATH -- PROGRAM` writes a trace"

LAYERS = ("program", "driver")

LARGE = 1 << 19  # bytes: no larger copy to the device passes through pinned memory (staging.h)

#: The calls that submit work to a stream, and the calls that wait for a stream.
_SUBMITS = ("mgpuLaunch", "mgpuMemcpy", "mgpuMemset")
_ENDS = ("mgpuStreamSynchronize", "mgpuStreamDestroy")


@dataclass
class Calls:
    """All calls of a function: the start and the duration of each call, in microseconds."""

    begins: array = field(default_factory=lambda: array("d"))
    durations: array = field(default_factory=lambda: array("d"))

    def add(self, begin: float, duration: float) -> None:
        self.begins.append(begin)
        self.durations.append(duration)

    def counter(self) -> Counter:
        """Returns the number of calls and the total time, in the units of a statistics file."""
        return Counter(len(self.durations), round(1000 * math.fsum(self.durations)))


@dataclass
class Results:
    """Counts a function's calls that had the same outcome, such as \"hit\" or \"bypass\"."""

    calls: int = 0
    bytes: int = 0
    large: int = 0  # calls with more than LARGE bytes
    behind: int = 0  # other calls whose stream had earlier work without a wait


@dataclass(frozen=True)
class Level:
    """The amount of device memory at one moment."""

    moment: float
    allocated: int
    cached: int


@dataclass
class Trace:
    """The traced calls of a run's processes."""

    layers: dict[str, dict[str, Calls]] = field(default_factory=lambda: {n: {} for n in LAYERS})
    kernels: dict[str, Counter] = field(default_factory=dict)
    results: dict[tuple[str, str], Results] = field(default_factory=dict)  # by function and outcome
    failed: dict[Failure, int] = field(default_factory=dict)  # failed calls of the program
    memory: list[Level] = field(default_factory=list)
    start: int | None = None  # nanoseconds of HIP's own start, of all processes
    programs: list[str] = field(default_factory=list)
    busy: set[tuple[Any, Any]] = field(default_factory=set)  # (process, stream), while reading
    kept: int = 0
    lost: int = 0

    @property
    def program(self) -> Mapping[str, Calls]:
        return self.layers["program"]

    @property
    def driver(self) -> Mapping[str, Calls]:
        return self.layers["driver"]

    @property
    def begin(self) -> float:
        """Returns the start of the first call."""
        return min(min(calls.begins) for calls in self._all())

    @property
    def end(self) -> float:
        """Returns the end of the last call."""
        return max(
            begin + duration
            for calls in self._all()
            for begin, duration in zip(calls.begins, calls.durations, strict=True)
        )

    def _all(self) -> Iterable[Calls]:
        return (calls for layer in self.layers.values() for calls in layer.values())


def ratios_in_turn(before: Trace, after: Trace, parts: int = 10) -> list[float]:
    """Divides each function's calls into tenths, in order. Returns, for each tenth of the calls,
    the first run's time divided by the second run's time. Returns an empty list if the runs made
    different calls or too few calls, or if a trace is incomplete."""
    counts = [{n: len(c.durations) for n, c in run.program.items()} for run in (before, after)]
    if counts[0] != counts[1] or max(counts[0].values()) < parts or before.lost or after.lost:
        return []
    sums = [_sums_in_turn(run, parts) for run in (before, after)]
    return [old / new for old, new in zip(*sums, strict=True) if old and new]


def _sums_in_turn(run: Trace, parts: int) -> list[float]:
    """Divides the calls of each function into equal parts. Returns the total time of each part,
    summed over all functions."""
    return [
        math.fsum(
            duration
            for calls in run.program.values()
            for duration in calls.durations[
                len(calls.durations) * part // parts : len(calls.durations) * (part + 1) // parts
            ]
        )
        for part in range(parts)
    ]


def read_traces(files: Mapping[str, Any]) -> Trace:
    """Reads the traces of a run's processes as one trace; `files` maps paths to contents. Raises
    CommandError."""
    trace = Trace()
    levels: list[tuple[float, int, int, int]] = []
    for path, raw in files.items():
        try:
            for event in raw["traceEvents"]:
                _add_event(trace, levels, event)
            other = raw.get("otherData", {})
            trace.kept += checked_count(other.get("kept", 0))
            trace.lost += checked_count(other.get("lost", 0))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
            raise CommandError(f"'{path}' is JSON, but no trace: {HOW_TO_GET_TRACE}") from None
        if not any(trace.layers.values()):
            raise CommandError(
                f"'{path}' is a trace without calls: trace a program that MLIR lowered"
            )
    trace.memory = _memory_of_all(levels)
    return trace


def _add_event(
    trace: Trace, levels: list[tuple[float, int, int, int]], event: dict[str, Any]
) -> None:
    """Adds one event to the trace; skips events of other tools, and events that describe
    streams."""
    kind, args = event["ph"], event.get("args", {})
    if kind == "X" and event.get("cat") in LAYERS:
        _add_call(trace, event, args)
    elif kind == "X" and event.get("cat") == "start":
        trace.start = (trace.start or 0) + round(1000 * checked_time(event["dur"]))
    elif kind == "C" and event["name"] == "device memory":
        values = (checked_count(args["allocated"]), checked_count(args["cached"]))
        levels.append((checked_time(event["ts"]), event["pid"], *values))
    elif kind == "M" and event["name"] == "process_name":
        trace.programs.append(str(args["name"]))


def _add_call(trace: Trace, event: dict[str, Any], args: dict[str, Any]) -> None:
    name, duration = event["name"], checked_time(event["dur"])
    calls = trace.layers[event["cat"]]
    if name not in calls:
        calls[str(name)] = Calls()
    calls[name].add(checked_time(event["ts"]), duration)
    if not args or event["cat"] != "program":
        return
    if error := args.get("error"):
        failure = Failure(str(name), str(error))
        trace.failed[failure] = trace.failed.get(failure, 0) + 1
    if kernel := args.get("kernel"):
        _count(trace.kernels, kernel, duration)
    stream = (event.get("pid"), args.get("stream"))
    if result := args.get("result"):
        results = trace.results.setdefault((name, str(result)), Results())
        size = checked_count(args.get("bytes", 0))
        results.calls += 1
        results.bytes += size
        results.large += size > LARGE
        results.behind += size <= LARGE and stream in trace.busy
    if name.startswith(_SUBMITS):
        trace.busy.add(stream)
    elif name in _ENDS:
        trace.busy.discard(stream)


def _count(counters: dict[str, Counter], name: Any, duration: float) -> None:
    before = counters.get(str(name), Counter(0, 0))
    counters[str(name)] = before + Counter(1, round(1000 * duration))


def _memory_of_all(levels: list[tuple[float, int, int, int]]) -> list[Level]:
    """Returns the sum of the processes' device memory after each change."""
    latest: dict[int, tuple[int, int]] = {}
    sums, held, kept = [], 0, 0
    for moment, pid, allocated, cached in sorted(levels):
        before = latest.get(pid, (0, 0))
        latest[pid] = (allocated, cached)
        held, kept = held + allocated - before[0], kept + cached - before[1]
        sums.append(Level(moment, held, kept))
    return sums


# ---- statistics: details that the page shows in addition to the counters ----


@dataclass(frozen=True)
class Details:
    """Details of a run; None stands for a value that was not counted."""

    modules: list[Module] | None = None
    processes: list[Process] = field(default_factory=list)
    peak: int | None = None  # of the memory held from the driver, over all devices


def details_of(statistics: Statistics, path: str) -> Details:
    """Reads the details of a run from one file. Raises CommandError."""
    raw = statistics.raw
    try:
        return Details(
            modules=list(statistics.modules) if "modules" in raw else None,
            processes=[statistics.process] if statistics.process else [],
            peak=_peak(raw.get("memory") or {}),
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        raise CommandError(
            f"'{path}' is JSON, but no statistics: {HOW_TO_GET_STATISTICS}"
        ) from None


def _peak(devices: dict[str, Any]) -> int | None:
    peaks = [checked_count(device["peak_reserved"]) for device in devices.values()]
    return sum(peaks) if peaks else None


def joined_details(parts: Iterable[Details]) -> Details:
    """Joins the details of a run's processes into one."""
    whole = Details()
    for part in parts:
        whole = Details(
            modules=_joined_modules(whole.modules, part.modules),
            processes=whole.processes + part.processes,
            peak=part.peak if whole.peak is None else whole.peak + (part.peak or 0),
        )
    return whole


def _joined_modules(left: list[Module] | None, right: list[Module] | None) -> list[Module] | None:
    """Joins two lists of modules; an image that several processes have loaded appears once."""
    if left is None or right is None:
        return left if right is None else right
    images = {module.image: module for module in left}
    for module in right:
        known = images.get(module.image)
        images[module.image] = (
            module
            if known is None
            else replace(
                known,
                loads=known.loads + module.loads,
                driver_loads=known.driver_loads + module.driver_loads,
            )
        )
    return list(images.values())


# ---- runs ----

HOW_TO_GET = "`mgpu-rt run --stats-json PATH --trace PATH -- PROGRAM` writes both kinds"


@dataclass(frozen=True)
class Run:
    """One run, as described by its files."""

    program: str
    statistics: Statistics
    details: Details
    trace: Trace | None
    sources: tuple[str, ...]  # the paths of the run's files, or its command line

    @property
    def start(self) -> int | None:
        """Returns the time of HIP's own start in nanoseconds. HIP's start occurs once in each
        process, and no call's time includes the start."""
        if self.statistics.start is not None or self.trace is None:
            return self.statistics.start
        return self.trace.start

    @property
    def is_stock(self) -> bool:
        """Returns True if modules were loaded and no cache counted a hit or a miss, as with
        MGPU_RT_CACHE=off."""
        caches = self.statistics.caches.values()
        asked = "mgpuModuleLoad" in self.statistics.program
        return asked and bool(caches) and not any(c.hits or c.misses for c in caches)


def names(runs: Sequence[Run]) -> list[str]:
    """Returns the names under which the page shows the runs."""
    return ["before", "after"] if len(runs) == 2 else ["this run"]


# ---- runs from files ----

Contents = dict[str, Any]  # of JSON files, by path


def of_files(paths: Sequence[str]) -> list[Run]:
    """Reads one run, or two runs. Raises CommandError."""
    contents = [(path, raw) for path in paths for raw in load(path, HOW_TO_GET)]
    traces = [{path: raw} for path, raw in contents if _is_trace(raw)]
    statistics = [{path: raw} for path, raw in contents if not _is_trace(raw)]
    for kind, found in (("statistics", statistics), ("trace", traces)):
        if len(found) > 2:
            raise CommandError(
                f"{len(found)} {kind} files were named: name one, or two for before and after"
            )
    return [_run(*pair) for pair in _pairs(statistics, traces)]


def _is_trace(raw: Any) -> bool:
    return isinstance(raw, dict) and "traceEvents" in raw


def _pairs(left: list[Contents], right: list[Contents]) -> list[tuple[Contents, Contents]]:
    """Pairs statistics with traces: by process if the files name the process, otherwise in order.
    If the files name no process, the first items of the longer list have no partner."""
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
        return False  # an earlier release's statistics, or a file that the readers will refuse


# ---- runs of a program ----


def of_program(command: Sequence[str], device: str) -> list[Run]:
    """Runs a program twice: with stock's behaviour for "before", and with the cache for "after".
    Raises CommandError."""
    from mgpu_rt._cli.stats import runs

    found = runs.both(command, device, _read_folder, trace=True)
    line = shlex.join(command)
    return [
        replace(run, sources=(f"{line}, run with {name}",))
        for run, name in zip(found, runs.NAMES, strict=True)
    ]


def _read_folder(folder: Path) -> Run:
    """Reads the files of all processes in the folder as one run."""
    found = {str(path): load(path, HOW_TO_GET) for path in sorted(folder.glob(f"*{ENDING}"))}
    statistics = {path: raws[0] for path, raws in found.items()}
    return _run(statistics, {path: raw for path, raws in found.items() for raw in raws[1:]})


# ---- runs from files and runs of a program ----


def _run(statistics: Contents, traces: Contents) -> Run:
    """Reads a run from the files of its processes."""
    read = read_traces(traces) if traces else None
    each = {path: parse(raw, path) for path, raw in statistics.items()}
    more = joined_details(details_of(part, path) for path, part in each.items())
    if statistics or not read:
        counted = added(each.values())
    else:
        layers = (_counters(read.program), _counters(read.driver))
        counted = Statistics(*layers, {}, failed=read.failed)
    sources = (*statistics, *traces)
    names = [process.program for process in more.processes] + (read.programs if read else [])
    return Run(names[0] if names else Path(sources[0]).stem, counted, more, read, sources)


def _counters(layer: Mapping[str, Calls]) -> dict[str, Counter]:
    return {name: calls.counter() for name, calls in layer.items()}
