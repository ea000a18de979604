"""Reads statistics files, which `mgpu-rt run --stats-json` writes, and recordings."""

from __future__ import annotations

import contextlib
import datetime
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats import faults
from mgpu_rt._record import Damaged, Recording, is_recording
from mgpu_rt._record_json import statistics, trace
from mgpu_rt._text import note_on, shown

HOW_TO_GET = "`mgpu-rt run --stats-json PATH -- PROGRAM` writes a statistics file"
HOW_TO_GET_TRACE = "`mgpu-rt run --trace PATH -- PROGRAM` writes a trace"
#: From these calls on, it is worth a change to save them.
MANY = 10

NOT_REUSED = "streams are not reused"

LOST = "the library could not make the recording, and a line above says why"

Sum = TypeVar("Sum")
Read = TypeVar("Read")


class _Sum:
    """Numbers that add up field by field. A sum with None, which was not counted, is None."""

    def __add__(self: Sum, other: Sum) -> Sum:
        pairs = [(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return type(self)(*(None if None in pair else sum(pair) for pair in pairs))


@dataclass(frozen=True)
class Counter(_Sum):
    calls: int
    ns: int


@dataclass(frozen=True)
class Cache(_Sum):
    hits: int | None
    misses: int
    bypasses: int | None
    evictions: int

    @property
    def is_unused(self) -> bool:
        return not (self.hits or self.misses or self.bypasses or self.evictions)

    @property
    def rate(self) -> float | None:
        """Returns the share of hits; None if the program requested no objects, or if hits were not
        counted."""
        asked = (self.hits or 0) + self.misses + (self.bypasses or 0)
        return None if self.hits is None or not asked else self.hits / asked


@dataclass(frozen=True)
class Copies(_Sum):
    """Counts the copies in one direction, or the fills."""

    calls: int
    bytes: int


@dataclass(frozen=True)
class Graphs(_Sum):
    """The graphs of a run."""

    built: int = 0
    refused: int = 0
    launches: int = 0
    nodes: int = 0  # sum over all launches
    plain: int = 0  # calls of functions of `mgpu-rt lower --graph` that ran plainly

    @property
    def summary(self) -> str:
        if not (self.built or self.refused or self.plain):
            return ""
        why = "" if self.launches else "; docs/graphs.md says when a graph is built"
        return (
            f"graphs: {self.built} built, {self.refused} refused; graph launches: "
            f"{self.launches}, of {self.nodes} nodes; calls without a graph: "
            f"{self.plain}{why}"
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
        if self == Made():
            return ""
        return (
            f"memory that the driver allocated: {self.first_use} at first use, {self.size} as "
            f"cached blocks had other sizes, {self.waits} as cached blocks waited for a stream, "
            f"{self.limit} as such blocks had gone back to HIP; blocks that HIP no longer knew at "
            f"their free: {self.other_code}"
        )


@dataclass(frozen=True)
class Kept(_Sum):
    """Why registrations that the library kept have ended."""

    changed: int = 0
    limited: int = 0

    @property
    def summary(self) -> str:
        if self == Kept():
            return ""
        return (
            f"registered memory: {self.changed} kept registrations ended as the program unmapped "
            f"or dropped their pages, {self.limited} for the limit; memory that changes again and "
            "again is not kept"
        )


@dataclass(frozen=True)
class Memory:
    """The bytes and blocks of a device's memory. None: not counted."""

    allocated: int
    peak_allocated: int | None
    reserved: int
    peak_reserved: int
    blocks: int
    cached_blocks: int


@dataclass(frozen=True)
class Module:
    image: str  # its hash
    bytes: int
    loads: int
    driver_loads: int
    kernels: list[str]
    why: str | None  # the reason why each load makes a new module


@dataclass(frozen=True)
class Process:
    program: str
    pid: int
    rank: int | None
    ended: str
    seconds: float | None  # time since HIP's start began; None: not counted
    begin: int | None  # of these seconds: ns of CLOCK_MONOTONIC

    @property
    def by_exit(self) -> bool:
        return self.ended == "exit"

    @property
    def description(self) -> str:
        rank = "" if self.rank is None else f", rank {self.rank}"
        how = "ended by exit" if self.by_exit else "not ended by exit, or still running"
        time = "" if self.seconds is None else f", {self.seconds:.3f} s since HIP's start began"
        return f"process {self.pid}{rank}: {how}{time}"


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
        return note_on(self.name)


@dataclass(frozen=True)
class Statistics:
    program: dict[str, Counter]
    driver: dict[str, Counter]
    caches: dict[str, Cache]
    #: The failed calls of each function with each error. "(others)": no function of the ABI.
    failed: dict[tuple[str, str], int] = field(default_factory=dict)
    overridden: int = 0  # calls whose driver calls were not counted
    postponed: int = 0  # synchronises that MGPU_RT_SYNC=lazy postponed
    kernels: dict[str, Counter] = field(default_factory=dict)
    copies: dict[str, Copies] = field(default_factory=dict)
    graphs: Graphs = Graphs()
    made: Made = Made()
    kept: Kept = Kept()
    modules: tuple[Module, ...] = ()
    processes: tuple[Process, ...] = ()
    start: int | None = None  # nanoseconds of HIP's own start, which are in no call's time
    device: Device | None = None
    other_calls: str = ""  # which call of HIP other code made first; empty if HIP does not report
    exclusive: bool = False  # MGPU_RT_EXCLUSIVE=on, in all processes
    memory: dict[str, Memory] = field(default_factory=dict)  # by device
    raw: dict[str, Any] = field(default_factory=dict)  # the file's content
    fault: list[str] = field(default_factory=list)  # lines about a memory fault, of a recording

    @property
    def failures(self) -> list[str]:
        return [
            f"{calls} call{'s' * (calls != 1)} of {shown(function)} failed with {shown(error)}"
            for (function, error), calls in self.failed.items()
        ]

    @property
    def is_stock(self) -> bool:
        """Returns True if modules were loaded and no cache counted a hit or a miss, as with
        MGPU_RT_CACHE=off."""
        asked = "mgpuModuleLoad" in self.program and bool(self.caches)
        return asked and not any(cache.hits or cache.misses for cache in self.caches.values())

    @property
    def is_exclusive(self) -> bool:
        """Returns True if MGPU_RT_EXCLUSIVE=on held to the end."""
        return self.exclusive and "ended MGPU_RT_EXCLUSIVE=on" not in self.other_calls

    @property
    def notes(self) -> list[str]:
        """Returns what no table shows: sentences about calls of the driver that were not counted,
        about graphs and about memory."""
        lazy = f"MGPU_RT_SYNC=lazy postponed {self.postponed} synchronises" * bool(self.postponed)
        graphs = "" if self.is_stock else self.graphs.summary
        told = (self.uncounted, graphs, self.made.summary, self.kept.summary, lazy)
        return [sentence for sentence in told if sentence]

    @property
    def unreused_streams(self) -> str:
        """Returns the evidence that the program leaves streams undestroyed; "" if they are few."""
        calls = (self.program.get(f"mgpuStream{name}") for name in ("Create", "Destroy"))
        made, gone = (each.calls if each else 0 for each in calls)
        misses = self.caches["streams"].misses if "streams" in self.caches else 0
        if min(misses, made - gone) < MANY:
            return ""
        return (
            f"{misses:,} of {made:,} streams came from the driver; the program destroyed {gone:,}"
        )

    @property
    def advice(self) -> list[str]:
        """Returns what a text says in place of the advice of a page."""
        found = self.unreused_streams
        return [f"{NOT_REUSED}: {found}; `mgpu-rt check` names the place"] if found else []

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


def devices(runs: Iterable[Statistics]) -> list[Device]:
    """Returns each device once, with the date of the last run on this device."""
    known = [run.device for run in runs if run.device]
    return list({(device.name, device.hip): device for device in known}.values())


def warning(runs: Iterable[Statistics]) -> str:
    """Returns a note if a run's device is emulated; returns "" if none is."""
    return next((device.warning for device in devices(runs) if device.warning), "")


def read(path: str | Path) -> Statistics:
    """Reads a statistics file or a recording. Raises CommandError."""
    content = files.read(str(path), HOW_TO_GET)
    found = recording(path, content)
    if not found:
        return parse(_json(path, content, HOW_TO_GET), path)
    with damage_named(path):
        return replace(parse(statistics(found), path), fault=faults.of_recording(found))


def load(path: str | Path, how_to_get: str) -> list[Any]:
    """Returns the JSON of a file. A recording contains statistics, and may also contain a trace.
    Raises CommandError."""
    content = files.read(str(path), how_to_get)
    if found := recording(path, content):
        with damage_named(path):
            return [statistics(found), *([json.loads(trace(found))] if found.is_trace else [])]
    return [_json(path, content, how_to_get)]


def _json(path: str | Path, content: bytes, how_to_get: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise CommandError(
            f"'{path}' was not written by the library, or is truncated: {how_to_get}"
        ) from None


def parse(raw: Any, path: str | Path) -> Statistics:
    try:
        given = {name: value for name, value in raw.items() if value is not None}  # counted
        process, device = given.get("process"), given.get("device")
        return Statistics(
            program=_named(Counter, given.get("abi", {})),
            driver=_named(Counter, given.get("hip", {})),
            caches=_named(Cache, raw["cache"]),
            failed={(r["function"], r["error"]): r["calls"] for r in given.get("failed", [])},
            overridden=given.get("overridden", 0),
            postponed=given.get("postponed", 0),
            kernels=_named(Counter, given.get("kernels", {}), calls="launches"),
            copies=_named(Copies, given.get("copies", {})),
            graphs=_read(Graphs, given["graphs"]) if "graphs" in given else Graphs(),
            made=_read(Made, given["made"]) if "made" in given else Made(),
            kept=_read(Kept, given["kept"]) if "kept" in given else Kept(),
            modules=tuple(_read(Module, module) for module in given.get("modules", [])),
            processes=(_read(Process, process),) if process is not None else (),
            start=raw["start"]["ns"] if "start" in raw else None,
            device=_device(device, process or {}) if device is not None else None,
            other_calls=str(raw.get("other_calls") or ""),
            exclusive=raw.get("exclusive") is True,
            memory=_named(Memory, given.get("memory", {})),
            raw=raw,
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, OSError):
        if isinstance(raw, dict) and "traceEvents" in raw:
            raise CommandError(
                f"'{path}' is a trace: see it in ui.perfetto.dev, or give --address; {HOW_TO_GET}"
            ) from None
        raise CommandError(f"'{path}' is JSON, but no statistics: {HOW_TO_GET}") from None


def _device(values: dict[str, Any], process: dict[str, Any]) -> Device:
    date = _date(process["date"]) if process.get("date") is not None else ""
    return _read(Device, {"name": values["name"] or "", "hip": values["hip"] or "", "date": date})


def _date(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def total(counters: Iterable[Counter]) -> Counter:
    return sum(counters, Counter(0, 0))


#: The values of processes that do not add up. `memory`, `raw` and `fault` are those of one
#: process.
_NOT_ADDED = {"start", "device", "other_calls", "exclusive", "memory", "raw", "fault"}
_ADDED = [each.name for each in fields(Statistics) if each.name not in _NOT_ADDED]


def added(runs: Iterable[Statistics]) -> Statistics:
    whole, every = Statistics({}, {}, {}), list(runs)
    for run in every:
        sums = {name: _sum(getattr(whole, name), getattr(run, name)) for name in _ADDED}
        whole = replace(whole, **sums)
    return replace(
        whole,
        start=sum(starts) if (starts := [r.start for r in every if r.start is not None]) else None,
        device=next((run.device for run in every if run.device), None),
        other_calls=_of_all(run.other_calls for run in every),
        exclusive=bool(every) and all(run.exclusive for run in every),
    )


def _of_all(texts: Iterable[str]) -> str:
    """Joins what the processes say about calls by other code. Leaves out "none" if a process names
    a call."""
    said = dict.fromkeys(text for text in texts if text)
    return "; ".join([text for text in said if text != "none"] or said)


def _sum(one: Any, other: Any) -> Any:
    """Adds numbers, tuples and `_Sum`s; those of dictionaries by their names."""
    if not isinstance(one, dict):
        return one + other
    return {**one, **{k: _sum(one[k], v) if k in one else v for k, v in other.items()}}


def _read(kind: type[Read], values: Any, **keys: str) -> Read:
    """Returns a dataclass whose fields have the values of these names. `keys` maps a field to the
    value's name, if this differs. Older releases do not count all that may be None. Raises
    TypeError if a number is no number."""
    found = {}
    for each in fields(kind):  # type: ignore[arg-type]
        key, may_miss = keys.get(each.name, each.name), each.type == "int | None"
        value = found[each.name] = values.get(key) if may_miss else values[key]
        is_missing = value is None and may_miss
        if str(each.type).startswith("int") and type(value) is not int and not is_missing:
            raise TypeError(f"{each.name} is {value!r}")
    return kind(**found)


def _named(kind: type[Read], values: dict[str, Any], **keys: str) -> dict[str, Read]:
    return {name: _read(kind, value, **keys) for name, value in values.items()}


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
    content = files.read(file, HOW_TO_GET_TRACE)
    found = recording(file, content)
    if found is None and content.startswith(b"{") and b'"traceEvents"' in content[:200]:
        raise CommandError(f"'{file}' is a trace already: see it in ui.perfetto.dev")
    if found is None:
        raise CommandError(f"'{file}' is not a recording: {HOW_TO_GET_TRACE}")
    with damage_named(file):
        text = trace(found) if found.is_trace else statistics_text(found)
    files.write(out, text)


def statistics_text(found: Recording) -> bytes:
    return json.dumps(statistics(found), ensure_ascii=False).encode() + b"\n"
