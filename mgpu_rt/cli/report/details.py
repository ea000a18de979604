"""What a statistics file says beside counters and caches: kernels, copies, modules, the process.

A file of an earlier release has none of it; the page then says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mgpu_rt.cli.problem import Problem
from mgpu_rt.cli.report import checked
from mgpu_rt.cli.stats.files import HOW_TO_GET, Counter


@dataclass(frozen=True)
class Copies:
    """In one direction."""

    calls: int
    bytes: int

    def __add__(self, other: Copies) -> Copies:
        return Copies(self.calls + other.calls, self.bytes + other.bytes)


Sum = TypeVar("Sum", Counter, Copies)


@dataclass(frozen=True)
class Module:
    """An image of device code."""

    image: str
    bytes: int
    loads: int  # the program's
    driver_loads: int
    kernels: tuple[str, ...]
    why: str | None  # each load is one of the driver's


@dataclass(frozen=True)
class Process:
    """One that wrote a file."""

    program: str
    pid: int | None = None
    rank: int | None = None
    ended: str = "exit"
    seconds: float | None = None


@dataclass(frozen=True)
class Details:
    """Of a run; None is what was not counted."""

    kernels: dict[str, Counter] | None = None
    copies: dict[str, Copies] | None = None
    modules: list[Module] | None = None
    processes: list[Process] = field(default_factory=list)
    peak: int | None = None  # of the memory held from the driver, over all devices


def parse(raw: dict[str, Any], path: str) -> Details:
    """Those of one file. Raises Problem."""
    try:
        return Details(
            kernels=_each(raw, "kernels", _launches),
            copies=_each(raw, "copies", _copies),
            modules=[_module(value) for value in raw["modules"]] if "modules" in raw else None,
            processes=[_process(raw["process"])] if "process" in raw else [],
            peak=_peak(raw.get("memory") or {}),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise Problem(f"'{path}' holds other JSON than statistics: {HOW_TO_GET}") from None


def _launches(value: dict[str, Any]) -> Counter:
    return Counter(checked.count(value["launches"]), checked.count(value["ns"]))


def _copies(value: dict[str, Any]) -> Copies:
    return Copies(checked.count(value["calls"]), checked.count(value["bytes"]))


def _each(
    raw: dict[str, Any], key: str, make: Callable[[dict[str, Any]], Sum]
) -> dict[str, Sum] | None:
    return {str(name): make(value) for name, value in raw[key].items()} if key in raw else None


def _module(value: dict[str, Any]) -> Module:
    numbers = [checked.count(value[key]) for key in ("bytes", "loads", "driver_loads")]
    kernels = tuple(map(str, value["kernels"]))
    why = None if value["why"] is None else str(value["why"])
    return Module(str(value["image"]), *numbers, kernels, why)


def _process(value: dict[str, Any]) -> Process:
    rank, seconds = value.get("rank"), value.get("seconds")
    return Process(
        program=str(value["program"]),
        pid=checked.count(value["pid"]),
        rank=None if rank is None else checked.count(rank),
        ended=str(value["ended"]),
        seconds=None if seconds is None else checked.time(seconds),
    )


def _peak(devices: dict[str, Any]) -> int | None:
    return (
        sum(checked.count(device["peak_reserved"]) for device in devices.values())
        if devices
        else None
    )


def added(parts: Iterable[Details]) -> Details:
    """Those of a run's processes as one."""
    whole = Details()
    for part in parts:
        whole = Details(
            kernels=_sums(whole.kernels, part.kernels),
            copies=_sums(whole.copies, part.copies),
            modules=_joined(whole.modules, part.modules),
            processes=whole.processes + part.processes,
            peak=part.peak if whole.peak is None else whole.peak + (part.peak or 0),
        )
    return whole


def _sums(left: dict[str, Sum] | None, right: dict[str, Sum] | None) -> dict[str, Sum] | None:
    if left is None or right is None:
        return left if right is None else right
    sums = dict(left)
    for name, value in right.items():
        sums[name] = sums[name] + value if name in sums else value
    return sums


def _joined(left: list[Module] | None, right: list[Module] | None) -> list[Module] | None:
    """Images that several processes have loaded are listed once."""
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
