"""Statistics and traces for tests, in the form in which a run writes them."""

from __future__ import annotations

from typing import Any

PID = 7
GRAPHS = {"built": 1, "refused": 0, "launches": 98, "nodes": 294, "plain": 1}


def statistics(**changes: Any) -> dict[str, Any]:
    """Returns statistics of 100 launches that the caches answered."""
    caches = ("modules", "functions", "streams", "memory", "registrations")
    hit = {"hits": 99, "misses": 1, "bypasses": 0, "evictions": 1}
    return {
        "abi": {
            name: {"calls": 100, "ns": 10_000}
            for name in (
                "mgpuModuleLoad",
                "mgpuModuleGetFunction",
                "mgpuLaunchKernel",
                "mgpuStreamCreate",
                "mgpuStreamDestroy",
            )
        },
        "hip": {"hipModuleLaunchKernel": {"calls": 100, "ns": 9_000}},
        "cache": {
            name: hit if name in ("modules", "functions", "streams") else dict.fromkeys(hit, 0)
            for name in caches
        },
        "memory": {},
        **changes,
    }


def stock(**changes: Any) -> dict[str, Any]:
    """Returns the statistics of a run without a cache."""
    whole = statistics()
    none = dict.fromkeys(whole["cache"]["modules"], 0)
    slow = {name: {"calls": 100, "ns": 1_000_000} for name in whole["abi"]}
    return {**whole, "abi": slow, "cache": dict.fromkeys(whole["cache"], none), **changes}


def process(**changes: Any) -> dict[str, Any]:
    """Returns the part of the statistics that describes the process."""
    known = {"pid": PID, "rank": None, "program": "forum", "ended": "exit", "seconds": 1.5}
    known["date"] = 1_800_000_000
    return {**known, **changes}


def module(**changes: Any) -> dict[str, Any]:
    """Returns the part of the statistics that describes a module."""
    known = {"image": "0123456789abcdef", "bytes": 4984, "loads": 100, "driver_loads": 1}
    return {**known, "kernels": ["count"], "why": None, **changes}


def call(
    name: str, begin: float, duration: float = 1.0, layer: str = "program", **args: Any
) -> dict[str, Any]:
    """Returns an event of a trace; times are in microseconds."""
    place = {"pid": PID, "tid": PID, "ts": begin, "dur": duration}
    return {"ph": "X", "name": name, "cat": layer, **place, **({"args": args} if args else {})}


def trace(*events: dict[str, Any], lost: int = 0) -> dict[str, Any]:
    """Returns a trace file's content."""
    name = {"ph": "M", "name": "process_name", "pid": PID, "args": {"name": "forum"}}
    kept = len(events)
    return {"traceEvents": [name, *events], "otherData": {"kept": kept, "lost": lost}}
