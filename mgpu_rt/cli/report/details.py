"""What the page takes of a statistics file beside the counters: modules, processes, the memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from mgpu_rt.cli.errors import Problem
from mgpu_rt.cli.stats import validate
from mgpu_rt.cli.stats.statistics import HOW_TO_GET, Module, Process, Statistics


@dataclass(frozen=True)
class Details:
    """Of a run; None is what was not counted."""

    modules: list[Module] | None = None
    processes: list[Process] = field(default_factory=list)
    peak: int | None = None  # of the memory held from the driver, over all devices


def of(statistics: Statistics, path: str) -> Details:
    """Those of one file. Raises Problem."""
    raw = statistics.raw
    try:
        return Details(
            modules=list(statistics.modules) if "modules" in raw else None,
            processes=[statistics.process] if statistics.process else [],
            peak=_peak(raw.get("memory") or {}),
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        raise Problem(f"'{path}' holds other JSON than statistics: {HOW_TO_GET}") from None


def _peak(devices: dict[str, Any]) -> int | None:
    peaks = [validate.count(device["peak_reserved"]) for device in devices.values()]
    return sum(peaks) if peaks else None


def added(parts: Iterable[Details]) -> Details:
    """Those of a run's processes as one."""
    whole = Details()
    for part in parts:
        whole = Details(
            modules=_joined(whole.modules, part.modules),
            processes=whole.processes + part.processes,
            peak=part.peak if whole.peak is None else whole.peak + (part.peak or 0),
        )
    return whole


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
