"""Reads statistics files, which `mgpu-rt run --stats-json` writes, and recordings."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import struct
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._images.kernel_names import full_name
from mgpu_rt._memory_table import memory_summary
from mgpu_rt._record import Damaged, Recording, is_recording
from mgpu_rt._record_json import statistics, trace
from mgpu_rt._text import shown

HOW_TO_GET = "`mgpu-rt run --stats-json PATH -- PROGRAM` writes a statistics file"
HOW_TO_GET_TRACE = "`mgpu-rt run --trace PATH -- PROGRAM` writes a trace"

Key = TypeVar("Key", bound=Hashable)
Sum = TypeVar("Sum")

ENDING = ".json"  # ending of the files that `compare` and `report` make a run write


class _Sum:
    """Numbers that add up field by field."""

    def __add__(self: Sum, other: Sum) -> Sum:
        names = (each.name for each in fields(self))
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True)
class Counter(_Sum):
    """The calls of a function, and their total time."""

    calls: int
    ns: int


@dataclass(frozen=True)
class Cache(_Sum):
    """The counters of a cache."""

    hits: int
    misses: int
    evictions: int

    @property
    def rate(self) -> float | None:
        """Returns the share of hits; None if the program requested no objects."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


@dataclass(frozen=True)
class Copies(_Sum):
    """Counts the copies in one direction, or the fills."""

    calls: int
    bytes: int


@dataclass(frozen=True)
class Graphs(_Sum):
    """The graphs of a run; one launch of a graph replaces one call for each node."""

    built: int = 0
    refused: int = 0
    launches: int = 0
    nodes: int = 0  # sum over all launches
    plain: int = 0  # calls of functions of `mgpu-rt lower --graph` that ran plainly

    @property
    def summary(self) -> str:
        """Returns a sentence about the graphs; returns "" without graphs."""
        if not (self.built or self.refused or self.plain):
            return ""
        return (
            f"graphs: {self.built} built, {self.refused} refused; graph launches: "
            f"{self.launches}, in place of {self.nodes} calls; calls without a graph: "
            f"{self.plain}"
        )


@dataclass(frozen=True)
class Made(_Sum):
    """The reasons why the driver allocated device memory, in place of the cache."""

    first_use: int = 0
    size: int = 0
    waits: int = 0
    limit: int = 0
    other_code: int = 0

    @property
    def summary(self) -> str:
        """Returns a sentence about the driver's allocations; returns "" without them."""
        if self == Made():
            return ""
        return (
            f"memory that the driver allocated: {self.first_use} at first use, {self.size} as "
            f"cached blocks had other sizes, {self.waits} as cached blocks waited for a stream, "
            f"{self.limit} after the limit, {self.other_code} after other code"
        )


@dataclass(frozen=True)
class Failure:
    """A kind of failed calls."""

    function: str  # "(others)": no function of the ABI
    error: str  # HIP's name for it

    def told(self, calls: int) -> str:
        """Returns a sentence about `calls` failed calls of this kind."""
        which = f"{calls} call{'s' * (calls != 1)} of {shown(self.function)}"
        return f"{which} failed with {shown(self.error)}"


@dataclass(frozen=True)
class Module:
    """An image of device code."""

    image: str  # its hash
    bytes: int
    loads: int
    driver_loads: int
    kernels: tuple[str, ...]
    why: str | None  # the reason why each load makes a new module


@dataclass(frozen=True)
class Process:
    """A process that wrote a file of statistics."""

    program: str
    pid: int
    rank: int | None
    by_exit: bool
    seconds: float  # time since the process's first call

    @property
    def ending(self) -> str:
        return "ended by exit" if self.by_exit else "not ended by exit, or still running"


@dataclass(frozen=True)
class Device:
    """The device and the HIP release of a process, and the date of the first call; an unknown value
    is empty."""

    name: str
    hip: str  # its release
    date: str  # date of the first call

    @property
    def description(self) -> str:
        hip = f"HIP {self.hip or 'of an unknown release'}"
        return ", ".join(filter(None, (self.name or "an unknown device", hip, self.date)))

    @property
    def warning(self) -> str:
        """Returns a note if the device is emulated; returns "" for a GPU."""
        return "EMULATED: no GPU was timed" if "(emulated)" in self.name else ""


@dataclass(frozen=True)
class Statistics:
    """The statistics of a run."""

    program: dict[str, Counter]
    driver: dict[str, Counter]
    caches: dict[str, Cache]
    failed: dict[Failure, int] = field(default_factory=dict)  # calls
    overridden: int = 0  # calls whose driver calls were not counted
    kernels: dict[str, Counter] = field(default_factory=dict)
    copies: dict[str, Copies] = field(default_factory=dict)
    graphs: Graphs = Graphs()
    made: Made = Made()
    modules: tuple[Module, ...] = ()
    process: Process | None = None
    start: int | None = None  # nanoseconds of HIP's own start, which are in no call's time
    device: Device | None = None
    other_calls: str = ""  # which call of HIP other code made first; empty if HIP does not report
    memory: str = ""  # a table of each device's memory
    registered: str = ""  # a sentence about registered memory
    raw: dict[str, Any] = field(default_factory=dict)  # the file's content

    @property
    def failures(self) -> list[str]:
        """Returns a sentence for each kind of failed calls."""
        return [failure.told(calls) for failure, calls in self.failed.items()]

    @property
    def uncounted(self) -> str:
        """Returns a sentence about driver calls that were not counted; empty if all were
        counted."""
        if not self.overridden:
            return ""
        return (
            f"a runtime in place of this library answered {self.overridden} calls: its calls of "
            "the driver are not counted"
        )


def _registered(cache: Cache | None, kept: dict[str, int]) -> str:
    """Returns a sentence about registered memory; returns "" if none was registered."""
    if cache is None or not cache.misses:
        return ""
    ranges, size, changed, limited = _numbers(kept, "ranges", "bytes", "changed", "limited")
    return (
        f"registered memory: hits {cache.hits}, misses {cache.misses}, cached {ranges} ({size} "
        f"bytes), evicted {cache.evictions}: {changed} because pages changed, {limited} for the "
        "limit"
    )


def devices(runs: Iterable[Statistics]) -> list[Device]:
    """Returns each device once, with the date of the last run on this device."""
    known = [run.device for run in runs if run.device]
    return list({(device.name, device.hip): device for device in known}.values())


def read(path: str | Path) -> Statistics:
    """Reads a statistics file or a recording. Raises CommandError."""
    return parse(load(path, HOW_TO_GET)[0], path)


def load(path: str | Path, how_to_get: str) -> list[Any]:
    """Returns the JSON of a file. A recording contains statistics, and may also contain a trace.
    Raises CommandError."""
    content = _content(path, how_to_get)
    if found := recording(path, content):
        with damage_named(path):
            return [statistics(found), *([json.loads(trace(found))] if found.is_trace else [])]
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise CommandError(f"'{path}' is not text: {how_to_get}") from None
    if not text.strip():
        raise CommandError(f"'{path}' is empty: {how_to_get}")
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith(("{", "[")):
            raise CommandError(f"'{path}' was not written by the library: {how_to_get}") from None
        raise CommandError(f"'{path}' is damaged or truncated ({error}): {how_to_get}") from None


def _content(path: str | Path, how_to_get: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise files.unreadable(path, error, how_to_get) from None


def parse(raw: Any, path: str | Path) -> Statistics:
    """Converts a file's JSON to statistics. Raises CommandError."""
    if isinstance(raw, dict) and "traceEvents" in raw:
        raise CommandError(
            f"'{path}' is a trace: open it in ui.perfetto.dev, or look for a block with --address; "
            f"{HOW_TO_GET}"
        )
    try:
        caches = {
            name: Cache(*_numbers(value, "hits", "misses", "evictions"))
            for name, value in raw["cache"].items()
        }
        return Statistics(
            program=_counters(raw["abi"]),
            driver=_counters(raw["hip"]),
            caches=caches,
            failed=dict(map(_failure, raw.get("failed", []))),
            overridden=checked_count(raw.get("overridden", 0)),
            kernels=_counters(raw.get("kernels", {}), "launches"),
            copies={
                way: Copies(*_numbers(value, "calls", "bytes"))
                for way, value in raw.get("copies", {}).items()
            },
            graphs=Graphs(*_numbers(raw.get("graphs", _NO_GRAPHS), *_NO_GRAPHS)),
            made=Made(*_numbers(raw.get("made", _NONE_MADE), *_NONE_MADE)),
            modules=tuple(map(_module, raw.get("modules", []))),
            process=_process(raw["process"]) if "process" in raw else None,
            start=checked_count(raw["start"]["ns"]) if "start" in raw else None,
            device=_device(raw["device"], raw.get("process", {})) if "device" in raw else None,
            other_calls=str(raw.get("other_calls") or ""),
            memory=memory_summary(raw) if raw.get("memory") else "",
            registered=_registered(caches.get("registrations"), raw.get("kept", {})),
            raw=raw,
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, OSError):
        raise CommandError(f"'{path}' is JSON, but no statistics: {HOW_TO_GET}") from None


#: The counts for a statistics file without graphs, which an older library wrote.
_NO_GRAPHS = asdict(Graphs())
#: The counts for a statistics file without reasons of allocations.
_NONE_MADE = asdict(Made())


def _counters(values: dict[str, Any], calls: str = "calls") -> dict[str, Counter]:
    return {name: Counter(*_numbers(value, calls, "ns")) for name, value in values.items()}


def _failure(values: dict[str, Any]) -> tuple[Failure, int]:
    function, error = values["function"], values["error"]
    if not isinstance(function, str) or not isinstance(error, str):
        raise ValueError
    return Failure(function, error), checked_count(values["calls"])


def _module(values: dict[str, Any]) -> Module:
    image, kernels, why = values["image"], tuple(values["kernels"]), values["why"]
    if not all(isinstance(text, str) for text in (image, why or "", *kernels)):
        raise ValueError
    numbers = _numbers(values, "bytes", "loads", "driver_loads")
    return Module(image, *numbers, kernels, why)


def _process(values: dict[str, Any]) -> Process:
    rank = values["rank"]
    return Process(
        program=str(values["program"]),
        pid=checked_count(values["pid"]),
        rank=None if rank is None else checked_count(rank),
        by_exit=values["ended"] == "exit",
        seconds=checked_time(values["seconds"]),
    )


def _device(values: dict[str, Any], process: dict[str, Any]) -> Device:
    name, hip = (values[key] or "" for key in ("name", "hip"))
    if not isinstance(name, str) or not isinstance(hip, str):
        raise ValueError
    return Device(name, hip, _date(checked_count(process["date"])) if "date" in process else "")


def _date(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _numbers(values: dict[str, Any], *names: str) -> list[int]:
    return [checked_count(values[name]) for name in names]


def total(counters: Iterable[Counter]) -> Counter:
    """Returns the sum of the counters."""
    return sum(counters, Counter(0, 0))


def added(runs: Iterable[Statistics]) -> Statistics:
    """Joins the statistics of a program's processes into one."""
    every = list(runs)
    return Statistics(
        program=_by_name(run.program for run in every),
        driver=_by_name(run.driver for run in every),
        caches=_by_name(run.caches for run in every),
        failed=_by_name(run.failed for run in every),
        overridden=sum(run.overridden for run in every),
        kernels=_by_name(_kernels_among(run, every) for run in every),
        copies=_by_name(run.copies for run in every),
        graphs=sum((run.graphs for run in every), Graphs()),
        made=sum((run.made for run in every), Made()),
        start=sum(starts) if (starts := [r.start for r in every if r.start is not None]) else None,
        device=next((run.device for run in every if run.device), None),
        other_calls=_of_all(run.other_calls for run in every),
    )


def _of_all(texts: Iterable[str]) -> str:
    """Joins what the processes say about calls by other code. Leaves out "none" if a process names
    a call."""
    said = dict.fromkeys(text for text in texts if text)
    return "; ".join([text for text in said if text != "none"] or said)


def _kernels_among(run: Statistics, every: list[Statistics]) -> dict[str, Counter]:
    """Maps the names of a run's kernels to their counters. A kernel gets its full name if the
    statistics of any process contain this full name."""
    shown = {name for other in every for name in other.kernels}
    listed = run.raw.get("kernels", {})
    full = {name: full_name(listed.get(name, {}).get("module") or "", name) for name in run.kernels}
    return {full[name] if full[name] in shown else name: row for name, row in run.kernels.items()}


def _by_name(parts: Iterable[dict[Key, Sum]]) -> dict[Key, Sum]:
    """Joins dictionaries, and sums the values that have the same name."""
    sums: dict[Key, Sum] = {}
    for part in parts:
        for name, value in part.items():
            sums[name] = sums[name] + value if name in sums else value
    return sums


# ---- numbers in files of unknown origin ----


def checked_count(value: Any) -> int:
    """Returns a number of calls or bytes from the JSON. Raises ValueError."""
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError
    return value


def checked_time(value: Any) -> float:
    """A time. Raises ValueError, TypeError or OverflowError."""
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError
    return number


# ---- recordings, which MGPU_RT_STATS=PATH and MGPU_RT_TRACE=PATH leave ----


def recording(path: str | Path, content: bytes) -> Recording | None:
    """Returns the recording in a file's content; None if the content is something else. Raises
    CommandError if the recording is damaged."""
    if not is_recording(content):
        return None
    with damage_named(path):
        found = Recording(content)
        statistics(found)
    return found


@contextlib.contextmanager
def damage_named(path: str | Path) -> Iterator[None]:
    """Converts the errors of reading a damaged recording to CommandError."""
    try:
        yield
    except Damaged as error:
        raise CommandError(f"'{path}' cannot be read: {error}") from None
    except (LookupError, ValueError, ArithmeticError, struct.error):
        raise CommandError(f"'{path}' cannot be read: the recording is damaged") from None


def convert(file: str, out: str) -> None:
    """Writes the Chrome trace of a recording to `out`, or its statistics if it contains no trace.
    Raises CommandError, and then writes no file."""
    content = _content(file, HOW_TO_GET_TRACE)
    found = recording(file, content)
    if found is None and b"traceEvents" in content[:64]:
        raise CommandError(f"'{file}' is a Chrome trace already: open it in ui.perfetto.dev")
    if found is None:
        raise CommandError(f"'{file}' is not a recording: {HOW_TO_GET_TRACE}")
    with damage_named(file):
        text = trace(found) if found.is_trace else statistics_text(found)
    files.write(out, text)


def statistics_text(found: Recording) -> bytes:
    """Returns a recording's statistics as the text of a statistics file."""
    return json.dumps(statistics(found), ensure_ascii=False).encode() + b"\n"
