"""Converts recordings to JSON: statistics, and traces for ui.perfetto.dev, as docs/statistics.md
describes them."""

from __future__ import annotations

import functools
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from mgpu_rt._record import Recording

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
_NO_STREAM = (1 << 64) - 1

_OTHERS = "(others)"

UNFINISHED = "unfinished"  # the result of a call that did not return


# ---- names ----


def labels(recording: Recording, modules: Mapping[int, str]) -> list[str]:
    """Returns the name of each row of the kernels. If several images have kernels of one name, the
    gpu.module precedes the name, or 8 digits of the image's hash."""
    from mgpu_rt._images.kernel_names import label_of

    images, names = (recording.values("kernel_names", name) for name in ("image", "name"))
    rows = [(i, modules.get(i, ""), name) for i, name in zip(images, names, strict=True)]
    alike: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for image, module, name in rows:
        if image:
            alike[name].add((image, module))
    return [
        label_of(
            name, module, f"{image >> 32:08x}", [m for i, m in alike[name] if image and i != image]
        )
        for image, module, name in rows
    ]


def _modules_of(recording: Recording) -> dict[int, str]:
    """Returns the gpu.modules by the hash of their image, as far as symbols name them. Several
    gpu.modules of one image become one name. A file that
    was written after the last call may have other symbols at the images' places."""
    from mgpu_rt._images.kernel_names import joined, modules_at

    date, begin, last = (recording.value("process", name) for name in ("date", "begin", "last"))
    end = date + 1 + max(0, last - begin) / 1e9  # the process began within the second `date`
    rows = zip(recording.values("module_keys"), recording.rows("module_places"), strict=False)
    return {
        key: name
        for key, row in rows
        if _is_older(row["file"], end) and (name := joined(modules_at(row["file"], row["offset"])))
    }


def _is_older(file: str, date: float) -> bool:
    try:
        return bool(file) and os.stat(file).st_mtime < date
    except OSError:
        return False


def hip_release(version: int) -> str | None:
    """Returns HIP's release in AMD's form, 5.2.21153."""
    major, rest = divmod(version, 10_000_000)
    return f"{major}.{rest // 100_000}.{rest % 100_000}" if version else None


# ---- statistics ----


def statistics(recording: Recording) -> dict[str, Any]:
    (process,) = recording.rows("process") or [{}]
    start = recording.rows("start")[0]
    modules = _modules_of(recording)
    named = labels(recording, modules)
    found = {
        "process": {
            "pid": process["id"],
            "rank": process["rank"] if process["rank"] >= 0 else None,
            "program": process["program"],
            "ended": "exit" if process["exited"] else "unfinished",
            "seconds": max(0, process["last"] - process["begin"]) // 1000 / 1e6,
            "begin": process["begin"],
            "date": process["date"],
        },
        "start": {"ns": start["nanoseconds"]},
        "device": {"name": start["device"] or None, "hip": hip_release(start["version"])},
        "other_calls": start["other_calls"] or None,
        "exclusive": bool(start["exclusive"]) if "exclusive" in start else None,
        "failed": _failed(recording),
        "abi": _counters(recording, "abi"),
        "hip": _counters(recording, "hip"),
        "overridden": recording.value("overridden"),
        "postponed": next(iter(recording.values("postponed")), None),  # None: an older release
        "kernels": _kernels(recording, named, modules),
        "copies": dict(zip(recording.names["copy"], recording.rows("copies"), strict=True)),
        "modules": _modules(recording, named, modules),
        "cache": dict(zip(recording.names["cache"], recording.rows("caches"), strict=True)),
        "graphs": recording.rows("graphs")[0],
        "kept": recording.rows("kept")[0],
        "made": recording.rows("made")[0],
        "memory": _memory(recording),
    }
    if process["manager"]:
        found["manager"] = process["manager"]
    return found if start.get("counted", 1) else _without_counts(found)


_COUNTED = (
    *("abi", "copies", "exclusive", "failed", "graphs", "hip", "kernels"),
    *("made", "modules", "overridden", "postponed"),
)


def _without_counts(found: dict[str, Any]) -> dict[str, Any]:
    """Replaces what the library counts only if statistics or a trace are on by None."""
    for name in _COUNTED:
        found[name] = None
    found["process"].update(dict.fromkeys(("seconds", "begin", "date")))
    found["start"]["ns"] = None
    for cache in found["cache"].values():
        cache["hits"] = cache["bypasses"] = None
    for device in found["memory"].values():
        device["peak_allocated"] = None
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


def _kernels(
    recording: Recording, named: list[str], modules: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """Rows of one name, whose names were cut off, are summed."""
    found: dict[str, dict[str, Any]] = {}
    rows = recording.tuples("kernels", ("calls", "nanoseconds"))
    images = recording.values("kernel_names", "image")
    for (calls, ns), name, image in zip(rows, named, images, strict=True):
        if calls:
            row = found.setdefault(name, {"launches": 0, "ns": 0, "module": modules.get(image)})
            row["launches"] += calls
            row["ns"] += ns
    (others,) = recording.tuples("other_kernels", ("calls", "nanoseconds"))
    if others[0]:
        found[_OTHERS] = {"launches": others[0], "ns": others[1], "module": None}
    return found


def _modules(
    recording: Recording, named: list[str], modules: Mapping[int, str]
) -> list[dict[str, Any]]:
    kernels: dict[int, list[str]] = defaultdict(list)
    images = recording.values("kernel_names", "image")
    keys = recording.values("kernel_keys")
    for key, image, name in zip(keys, images, named, strict=True):
        if key:
            kernels[image].append(name)
    reasons = dict(enumerate(recording.names["why"]))
    columns = ("bytes", "loads", "driver_loads", "why")
    rows = zip(recording.values("module_keys"), recording.tuples("modules", columns), strict=True)
    return [
        {
            "image": f"{key:016x}",
            "bytes": size,
            "loads": loads,
            "driver_loads": driver_loads,
            "kernels": kernels[key],
            "name": modules.get(key),
            "why": reasons.get(why) or None,
        }
        for key, (size, loads, driver_loads, why) in rows
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
    "address",
)


def trace(recording: Recording) -> bytes:
    """Returns a trace as JSON, one event a line. Raises Damaged."""
    pid, program = recording.value("process", "id"), recording.value("process", "program")
    streams_pid = pid + (1 << 22)  # Linux never uses this id
    found = [_name("process_name", pid, 0, program)]
    events, written = recording.events(_EVENT)
    reader, kept = _Reader(recording, pid, streams_pid), 0
    for event in events:
        kept += 1
        found += map(_dumped, reader.of(event))
    found += map(_dumped, reader.unfinished())
    if reader.streams:
        found.append(_name("process_name", streams_pid, 0, f"{program}: streams"))
    for stream in sorted(reader.streams):
        row = f"stream {stream}" if stream else "null stream"
        found.append(_name("thread_name", streams_pid, stream, row))
    other = {
        "kept": kept,
        "lost": written - kept,
        "ended": "exit" if recording.value("process", "exited") else "unfinished",
    }
    if (fault := fault_address(recording)) is not None:
        other["fault"] = hex(fault)
    head = '{"displayTimeUnit": "ns", "traceEvents": [\n'
    lines = ",\n".join(found)
    return f'{head}{lines}\n], "otherData": {json.dumps(other)}}}\n'.encode()


#: Returns an event as a line.
_dumped = functools.partial(json.dumps, ensure_ascii=False)


def _name(what: str, pid: int, row: int, name: str) -> str:
    return _dumped({"ph": "M", "name": what, "pid": pid, "tid": row, "args": {"name": name}})


class _Reader:
    """Reads a trace's events; collects the streams that have events."""

    def __init__(self, recording: Recording, pid: int, streams_pid: int) -> None:
        self.pid, self.streams_pid = pid, streams_pid
        self.streams: set[int] = set()
        self._numbers = {0: 0}  # of streams' handles, in the order of their first use
        self._errors = recording.error
        names = recording.names
        self._functions = {"program": names["abi"], "driver": names["hip"]}
        self._work = {names["abi"].index(name) for name in _WORK if name in names["abi"]}
        self._kinds, self._hows = names["kind"], names["how"]
        rows, keys = recording.rows("places"), recording.values("place_keys")
        self._places = [_site(row) if key else "" for row, key in zip(rows, keys, strict=True)]
        self._kernels = labels(recording, _modules_of(recording))
        self._pointers: dict[int, list[str]] = defaultdict(list)  # of the thread's next call
        self._begun: dict[int, tuple[Any, ...]] = {}  # the last pointer of that call

    def of(self, event: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
        """Yields the event as a call of its thread, and work also as an event of its stream. The
        unit of time is the microsecond."""
        begin, ns, size, thread, kind, function, kernel, handle, *_ = event
        what = self._kinds[kind] if kind < len(self._kinds) else "?"
        at = {"ts": begin / 1000}
        if what == "memory":
            args = {"allocated": ns, "rounding and cached": size}
            of = {"id": str(function)} if function else {}
            memory = {"ph": "C", "name": "device memory", "pid": self.pid, "tid": 0}
            yield {**memory, **of, **at, "args": args}
            return
        if what == "pointer":
            self._pointers[thread].append(hex(event[-1]))
            self._begun[thread] = event
            return
        known = self._functions.get(what, [])
        name = {"start": "HIP's start", "graph": "graph"}.get(what)
        name = name or (known[function] if function < len(known) else "?")
        times = {**at, "dur": ns / 1000, "args": self._args(what, event)}
        yield {"ph": "X", "name": name, "cat": what, "pid": self.pid, "tid": thread, **times}
        if what == "program" and function in self._work and handle != _NO_STREAM:
            stream = self._number(handle)
            self.streams.add(stream)
            work = self._kernels[kernel] if kernel < len(self._kernels) else name
            on = {"pid": self.streams_pid, "tid": stream}
            yield {"ph": "X", "name": work, "cat": "stream", **on, **times}

    def unfinished(self) -> Iterator[dict[str, Any]]:
        """Yields the calls that the end of the process has interrupted."""
        program, hows = self._kinds.index("program"), len(self._hows)
        self._hows.append(UNFINISHED)
        for begin, _, size, thread, _, function, kernel, stream, *_ in [*self._begun.values()]:
            call = (begin, 0, size, thread, program, function, kernel, stream, hows, 0, 0, 0)
            yield from self.of(call)

    def _number(self, stream: int) -> int:
        return self._numbers.setdefault(stream, len(self._numbers))

    def _args(self, what: str, event: tuple[Any, ...]) -> dict[str, Any]:
        _, _, size, thread, _, _, kernel, stream, detail, error, place, address = event
        failed = {"error": self._errors(error)} if error else {}
        if what == "graph":
            return {"nodes": size, **failed}
        if what == "driver":
            return failed
        found: dict[str, Any] = {}
        if kernel < len(self._kernels) and what == "program":
            found["kernel"] = self._kernels[kernel]
        if stream != _NO_STREAM:
            found["stream"] = self._number(stream)
        if size:
            found["bytes"] = size
        if 0 < detail < len(self._hows):
            found["result"] = self._hows[detail]
        if 0 < place <= len(self._places):
            found["place"] = self._places[place - 1]
        if address:
            found["address"] = hex(address)
        if what == "program" and self._begun.pop(thread, None):
            found["pointers"] = self._pointers.pop(thread)
        return {**found, **failed}


def fault_address(recording: Recording) -> int | None:
    """Returns the address of the memory fault that ended the process, if ROCr has told it."""
    (process,) = recording.rows("process") or [{}]
    return process.get("fault") if process.get("faults") else None


# ---- places that allocate ----


def _site(row: dict[str, Any]) -> str:
    """Returns a place's text: the symbol, the file, and the offset for addr2line."""
    from mgpu_rt._images import elf

    file, offset = row["file"], row["offset"]
    if not file:
        return f"{offset:#x}"
    place = f"{os.path.basename(file)}+{offset:#x}"
    symbol = elf.symbol_at(file, offset)
    return f"{symbol.name}+{offset - symbol.value:#x} ({place})" if symbol else place
