"""Converts recordings to JSON: statistics, and traces for ui.perfetto.dev, as docs/statistics.md
describes them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mgpu_rt._record import Recording, text

_WORK = (  # calls that submit work to a stream, or wait for a stream
    "mgpuLaunchKernel",
    "mgpuLaunchKernelCooperative",
    "mgpuLaunchClusterKernel",
    "mgpuLaunchKernelRT",
    "mgpuMemcpy",
    "mgpuMemset16",
    "mgpuMemset32",
    "mgpuEventRecord",
    "mgpuStreamWaitEvent",
    "mgpuStreamSynchronize",
)
_NO_STREAM = 0xFFFF

_OTHERS = "(others)"


# ---- names ----


def labels(recording: Recording) -> list[str]:
    """Returns the name of each row of the kernels. If several images have kernels of one name, the
    gpu.module precedes the name, or 8 digits of the image's hash."""
    columns = (recording.values("kernel_names", name) for name in ("image", "module", "name"))
    rows = list(zip(*columns, strict=True))
    alike: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for image, module, name in rows:
        if image:
            alike[name].add((image, module))
    return [_label(*row, alike.get(row[2], set())) for row in rows]


def _label(image: int, module: str, name: str, alike: set[tuple[int, str]]) -> str:
    others = {others_module for other, others_module in alike if image and other != image}
    if not others:
        return name
    if module and module not in others:
        return f"{module}::{name}"
    return f"{image >> 32:08x}::{name}"


def _release(version: int) -> str | None:
    """Returns HIP's release in AMD's form, 5.2.21153."""
    major, rest = divmod(version, 10_000_000)
    return f"{major}.{rest // 100_000}.{rest % 100_000}" if version else None


# ---- statistics ----


def statistics(recording: Recording) -> dict[str, Any]:
    """Returns the statistics. Raises Damaged."""
    (process,) = recording.rows("process") or [{}]
    start = recording.rows("start")[0]
    named = labels(recording)
    found = {
        "process": {
            "pid": process["id"],
            "rank": process["rank"] if process["rank"] >= 0 else None,
            "program": process["program"],
            "ended": "exit" if process["exited"] else "unfinished",
            "seconds": max(0, process["last"] - process["begin"]) // 1000 / 1e6,
            "date": process["date"],
        },
        "start": {"ns": start["nanoseconds"]},
        "device": {"name": start["device"] or None, "hip": _release(start["version"])},
        "other_calls": start["other_calls"] or None,
        "failed": _failed(recording),
        "abi": _counters(recording, "abi"),
        "hip": _counters(recording, "hip"),
        "overridden": recording.value("overridden"),
        "kernels": _kernels(recording, named),
        "copies": dict(zip(recording.names["copy"], recording.rows("copies"), strict=True)),
        "modules": _modules(recording, named),
        "cache": dict(zip(recording.names["cache"], recording.rows("caches"), strict=True)),
        "graphs": recording.rows("graphs")[0],
        "kept": recording.rows("kept")[0],
        "made": recording.rows("made")[0],
        "memory": _memory(recording),
    }
    if process["manager"]:
        found["manager"] = process["manager"]
    return found


def _counters(recording: Recording, table: str) -> dict[str, dict[str, int]]:
    rows = recording.tuples(table, ("calls", "nanoseconds"))
    pairs = zip(recording.names[table], rows, strict=False)
    return {name: {"calls": calls, "ns": ns} for name, (calls, ns) in pairs if calls}


def _failed(recording: Recording) -> list[dict[str, Any]]:
    names = recording.names["abi"]
    found = []
    keys, counts = recording.values("failure_keys"), recording.values("failures")
    for key, calls in zip(keys, counts, strict=True):
        function, error = (key >> 32) - 1, key & 0xFFFFFFFF
        if calls:
            name = names[function] if function < len(names) else _OTHERS
            found.append({"function": name, "error": recording.error(error), "calls": calls})
    return found


def _kernels(recording: Recording, named: list[str]) -> dict[str, dict[str, Any]]:
    """Rows of one name, whose names were cut off, are summed."""
    found: dict[str, dict[str, Any]] = {}
    rows = recording.tuples("kernels", ("calls", "nanoseconds"))
    modules = recording.values("kernel_names", "module")
    for (calls, ns), name, module in zip(rows, named, modules, strict=True):
        if calls:
            row = found.setdefault(name, {"launches": 0, "ns": 0, "module": module or None})
            row["launches"] += calls
            row["ns"] += ns
    (others,) = recording.tuples("other_kernels", ("calls", "nanoseconds"))
    if others[0]:
        found[_OTHERS] = {"launches": others[0], "ns": others[1], "module": None}
    return found


def _modules(recording: Recording, named: list[str]) -> list[dict[str, Any]]:
    kernels: dict[int, list[str]] = defaultdict(list)
    images = recording.values("kernel_names", "image")
    keys = recording.values("kernel_keys")
    for key, image, name in zip(keys, images, named, strict=True):
        if key:
            kernels[image].append(name)
    reasons = dict(enumerate(recording.names["why"]))
    columns = ("bytes", "loads", "driver_loads", "why", "name")
    rows = zip(recording.values("module_keys"), recording.tuples("modules", columns), strict=True)
    return [
        {
            "image": f"{key:016x}",
            "bytes": size,
            "loads": loads,
            "driver_loads": driver_loads,
            "kernels": kernels[key],
            "name": text(name) or None,
            "why": reasons.get(why) or None,
        }
        for key, (size, loads, driver_loads, why, name) in rows
        if loads
    ]


def _memory(recording: Recording) -> dict[str, dict[str, int]]:
    """Leaves out devices on which no block was requested."""
    order = ("allocated", "peak_allocated", "reserved", "peak_reserved", "blocks")
    return {
        str(device): {
            **{name: row[name] for name in order},
            "cached_blocks": row["blocks"] - row["live"],
        }
        for device, row in enumerate(recording.rows("memory"))
        if row["peak_reserved"]
    }


# ---- traces ----

_EVENT = (
    "begin",
    "nanoseconds",
    "bytes",
    "thread",
    "kind",
    "function",
    "kernel",
    "stream",
    "detail",
    "error",
    "place",
)


def lost_events(recording: Recording) -> tuple[int, int]:
    """Returns how many events a trace contains, and how many it has lost."""
    events, written = recording.events(())
    kept = sum(1 for _ in events)
    return kept, written - kept


def trace(recording: Recording) -> bytes:
    """Returns a trace as JSON. Raises Damaged."""
    return "".join(_trace(recording)).encode()


def _trace(recording: Recording) -> Iterator[str]:
    pid, program = recording.value("process", "id"), recording.value("process", "program")
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n' + _name("process_name", pid, 0, program)
    keys, names = recording.values("thread_keys"), recording.values("thread_names", "name")
    for thread, name in zip(keys, names, strict=True):
        if thread:
            yield ",\n" + _name("thread_name", pid, thread, name)
    lines = _Lines(recording, pid)
    events, written = recording.events(_EVENT)
    kept = 0
    for event in events:
        kept += 1
        yield lines.of(event)
    if lines.streams:
        yield ",\n" + _name("process_name", lines.streams_pid, 0, f"{program}: streams")
    for stream in sorted(lines.streams):
        row = f"stream {stream}" if stream else "null stream"
        yield ",\n" + _name("thread_name", lines.streams_pid, stream, row)
    other = {
        "kept": kept,
        "lost": written - kept,
        "ended": "exit" if recording.value("process", "exited") else "unfinished",
    }
    yield f'\n], "otherData": {json.dumps(other)}}}\n'


def _name(what: str, pid: int, row: int, name: str) -> str:
    event = {"ph": "M", "name": what, "pid": pid, "tid": row, "args": {"name": name}}
    return json.dumps(event, ensure_ascii=False)


def _time(ns: int) -> str:
    """Chrome's unit of time is the microsecond."""
    return f"{ns // 1000}.{ns % 1000:03d}"


class _Lines:
    """The lines of a trace's events; collects the streams that have events."""

    def __init__(self, recording: Recording, pid: int) -> None:
        self.pid = pid
        self.streams_pid = pid + (1 << 22)  # Linux never uses this id
        self.streams: set[int] = set()
        self._errors = recording.error
        names = recording.names
        self._functions = {"program": names["abi"], "driver": names["hip"]}
        self._work = {names["abi"].index(name) for name in _WORK if name in names["abi"]}
        self._kinds, self._hows = names["kind"], names["how"]
        self._kernels = [_quoted(name) for name in labels(recording)]
        self._places = [_quoted(place) for place in places(recording)]

    def of(self, event: tuple[Any, ...]) -> str:
        begin, ns, _, thread, kind, function, kernel, stream, *_ = event
        what = self._kinds[kind] if kind < len(self._kinds) else "?"
        if what == "memory":
            return self._memory(event)
        known = self._functions.get(what, [])
        name = _quoted(known[function] if function < len(known) else "?")
        if what == "start":
            name = '"HIP\'s start"'
        elif what == "graph":
            name = '"graph"'
        times = f'"ts": {_time(begin)}, "dur": {_time(ns)}, "args": {{{self._args(what, event)}}}}}'
        row = f'"pid": {self.pid}, "tid": {thread}, '
        line = f',\n{{"ph": "X", "name": {name}, "cat": "{what}", {row}{times}'
        if what != "program" or function not in self._work or stream == _NO_STREAM:
            return line
        self.streams.add(stream)
        work = self._kernels[kernel] if kernel < len(self._kernels) else name
        row = f'"pid": {self.streams_pid}, "tid": {stream}, '
        return f'{line},\n{{"ph": "X", "name": {work}, "cat": "stream", {row}{times}'

    def _memory(self, event: tuple[Any, ...]) -> str:
        begin, allocated, cached, _, _, device, *_ = event
        other = f'"id": "{device}", ' if device else ""
        return (
            f',\n{{"ph": "C", "name": "device memory", "pid": {self.pid}, "tid": 0, {other}'
            f'"ts": {_time(begin)}, "args": {{"allocated": {allocated}, "cached": {cached}}}}}'
        )

    def _args(self, what: str, event: tuple[Any, ...]) -> str:
        _, _, size, _, _, _, kernel, stream, detail, error, place = event
        found = []
        if what == "graph":
            found.append(f'"nodes": {size}')
        elif what != "driver":
            if kernel < len(self._kernels) and what == "program":
                found.append(f'"kernel": {self._kernels[kernel]}')
            if stream != _NO_STREAM:
                found.append(f'"stream": {stream}')
            if size:
                found.append(f'"bytes": {size}')
            if 0 < detail < len(self._hows):
                found.append(f'"result": "{self._hows[detail]}"')
            if 0 < place <= len(self._places):
                found.append(f'"place": {self._places[place - 1]}')
        if error:
            found.append(f'"error": {_quoted(self._errors(error))}')
        return ", ".join(found)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# ---- places that allocate ----


def places(recording: Recording) -> list[str]:
    """Returns the place of each row: a file and an offset, for addr2line, or an address."""
    rows = recording.rows("places")
    return [
        f"{os.path.basename(row['file'])}+{row['offset']:#x}" if row["file"] else hex(row["offset"])
        for row in rows
    ]
