"""Trace files: what MGPU_RT_TRACE=PATH writes, in the terms of the page."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mgpu_rt.cli.errors import Problem
from mgpu_rt.cli.stats import validate
from mgpu_rt.cli.stats.statistics import Counter

HOW_TO_GET = "`mgpu-rt run --trace PATH -- PROGRAM` writes one"

LAYERS = ("program", "driver")

LARGE = 1 << 19  # bytes: no larger copy to the device passes through pinned memory (staging.h)

#: What a stream is given to do, and what has seen it done.
_SUBMITS = ("mgpuLaunch", "mgpuMemcpy", "mgpuMemset")
_ENDS = ("mgpuStreamSynchronize", "mgpuStreamDestroy")


@dataclass
class Calls:
    """All calls of a function: when each began and how long it took, in microseconds."""

    begins: array = field(default_factory=lambda: array("d"))
    durations: array = field(default_factory=lambda: array("d"))

    def add(self, begin: float, duration: float) -> None:
        self.begins.append(begin)
        self.durations.append(duration)

    def counter(self) -> Counter:
        """The same as a statistics file has it."""
        return Counter(len(self.durations), round(1000 * math.fsum(self.durations)))


@dataclass
class Results:
    """How a cache took the calls of a function, by the trace's word for it."""

    calls: int = 0
    bytes: int = 0
    large: int = 0  # of the calls: with more than LARGE bytes
    behind: int = 0  # of the others: behind work that their stream was given and nobody waited for


@dataclass(frozen=True)
class Level:
    """Device memory at a moment."""

    moment: float
    allocated: int
    cached: int


@dataclass
class Trace:
    """The calls of a run's processes."""

    layers: dict[str, dict[str, Calls]] = field(default_factory=lambda: {n: {} for n in LAYERS})
    kernels: dict[str, Counter] = field(default_factory=dict)
    gpu: dict[str, Counter] = field(default_factory=dict)  # by kernel, or what else was submitted
    results: dict[tuple[str, str], Results] = field(default_factory=dict)  # of function and word
    errors: dict[tuple[str, int], int] = field(default_factory=dict)  # of function and number
    memory: list[Level] = field(default_factory=list)
    start: int | None = None  # nanoseconds of HIP's own start, of all processes
    programs: list[str] = field(default_factory=list)
    busy: set[tuple[Any, Any]] = field(default_factory=set)  # processes' streams, while it is read
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
        """When the first call began."""
        return min(min(calls.begins) for calls in self._all())

    @property
    def end(self) -> float:
        """When the last call had returned."""
        return max(
            begin + duration
            for calls in self._all()
            for begin, duration in zip(calls.begins, calls.durations, strict=True)
        )

    def _all(self) -> Iterable[Calls]:
        return (calls for layer in self.layers.values() for calls in layer.values())


def parse(files: Mapping[str, Any]) -> Trace:
    """The traces of a run's processes as one; `files` are contents by path. Raises Problem."""
    trace = Trace()
    levels: list[tuple[float, int, int, int]] = []
    for path, raw in files.items():
        try:
            for event in raw["traceEvents"]:
                _take(trace, levels, event)
            other = raw.get("otherData", {})
            trace.kept += validate.count(other.get("kept", 0))
            trace.lost += validate.count(other.get("lost", 0))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
            raise Problem(f"'{path}' holds other JSON than a trace: {HOW_TO_GET}") from None
        if not any(trace.layers.values()):
            raise Problem(f"'{path}' is a trace without calls: trace a program that MLIR lowered")
    trace.memory = _sums(levels)
    return trace


def _take(trace: Trace, levels: list[tuple[float, int, int, int]], event: dict[str, Any]) -> None:
    """One event. Those of other makers and of streams are passed over."""
    kind, args = event["ph"], event.get("args", {})
    if kind == "X" and event.get("cat") in LAYERS:
        _take_call(trace, event, args)
    elif kind == "X" and event.get("cat") == "start":
        trace.start = (trace.start or 0) + round(1000 * validate.time(event["dur"]))
    elif kind == "X" and event.get("cat") == "gpu":
        _add(trace.gpu, event["name"], validate.time(event["dur"]))
    elif kind == "C" and event["name"] == "device memory":
        values = (validate.count(args["allocated"]), validate.count(args["cached"]))
        levels.append((validate.time(event["ts"]), event["pid"], *values))
    elif kind == "M" and event["name"] == "process_name":
        trace.programs.append(str(args["name"]))


def _take_call(trace: Trace, event: dict[str, Any], args: dict[str, Any]) -> None:
    name, duration = event["name"], validate.time(event["dur"])
    calls = trace.layers[event["cat"]]
    if name not in calls:
        calls[str(name)] = Calls()
    calls[name].add(validate.time(event["ts"]), duration)
    if error := args.get("error"):
        key = (name, int(error))
        trace.errors[key] = trace.errors.get(key, 0) + 1
    if not args or event["cat"] != "program":
        return
    if kernel := args.get("kernel"):
        _add(trace.kernels, kernel, duration)
    stream = (event.get("pid"), args.get("stream"))
    if result := args.get("result"):
        results = trace.results.setdefault((name, str(result)), Results())
        size = validate.count(args.get("bytes", 0))
        results.calls += 1
        results.bytes += size
        results.large += size > LARGE
        results.behind += size <= LARGE and stream in trace.busy
    if name.startswith(_SUBMITS):
        trace.busy.add(stream)
    elif name in _ENDS:
        trace.busy.discard(stream)


def _add(counters: dict[str, Counter], name: Any, duration: float) -> None:
    before = counters.get(str(name), Counter(0, 0))
    counters[str(name)] = before + Counter(1, round(1000 * duration))


def _sums(levels: list[tuple[float, int, int, int]]) -> list[Level]:
    """Of all processes at each moment at which one has changed."""
    latest: dict[int, tuple[int, int]] = {}
    sums, held, kept = [], 0, 0
    for moment, pid, allocated, cached in sorted(levels):
        before = latest.get(pid, (0, 0))
        latest[pid] = (allocated, cached)
        held, kept = held + allocated - before[0], kept + cached - before[1]
        sums.append(Level(moment, held, kept))
    return sums
