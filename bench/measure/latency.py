"""Measures the delay between a synchronise and the next kernel's begin, and between a kernel's end
and the synchronise's return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, Step, median

METHOD = (
    "Device timestamps (%globaltimer at a kernel's begin and end, 3 µs apart), matched to the "
    "host's clock by the fastest of 2000 questions and answers through mapped memory before and "
    "after the loop. Start: from the return of a synchronise to the next kernel's begin, with all "
    "the calls of a lowered program in between. End: from the kernel's end to the return of its "
    "synchronise."
)
LAUNCHES = 2000
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
PTX = native.SOURCES / "latency.ptx"


@dataclass(frozen=True)
class Way:
    """A runtime, and the number of calls of this runtime for one launch."""

    title: str
    calls: int
    library: Path
    variables: Mapping[str, str]


def _ways(llvm_runtime: Path | None) -> list[Way]:
    ours, off = native.RUNTIME, {"MGPU_RT_CACHE": "off"}
    ways = [Way("by hand", 2, ours, {})]
    for calls, release in ((7, "LLVM 19"), (5, "LLVM 22")):
        ways.append(Way(f"stock's behaviour, {release}", calls, ours, off))
        if llvm_runtime:
            ways.append(Way(f"LLVM's own library, {release}", calls, llvm_runtime, {}))
        ways.append(Way(f"mgpu_rt, {release}", calls, ours, {}))
    statistics = {"MGPU_RT_STATS": os.devnull}
    return [*ways, Way("mgpu_rt with MGPU_RT_STATS, LLVM 19", 7, ours, statistics)]


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """Measures ``repetitions`` processes of each side in turn."""
    if device.name != "cuda":
        raise native.Failed("only NVIDIA's clock is read, which needs --device cuda")
    ways = _ways(llvm_runtime)
    taken: dict[str, list[dict[str, Any]]] = {way.title: [] for way in ways}
    for number in range(repetitions):
        for way in ways:
            step(f"{way.title}, {number + 1} of {repetitions}")
            taken[way.title].append(_measure(device, way))
    figures = [*_clocks([one for runs in taken.values() for one in runs])]
    data: list[dict[str, Any]] = []
    for way in ways:
        for key, words in (("start", "synchronise to kernel"), ("end", "kernel to synchronise")):
            samples = sorted(ns / 1e3 for one in taken[way.title] for ns in one[key])
            figures.append(median(f"{words}, {way.title}", samples, "µs"))
            spread = [_percentile(samples, percent) for percent in PERCENTILES]
            data.append({"side": way.title, "what": key, "percentiles": PERCENTILES, "us": spread})
    return Result("latency", device.title, METHOD, figures, on=device.name, data=data)


def _measure(device: Device, way: Way) -> dict[str, Any]:
    command = [native.program("latency", device.chip), device.hip, way.library, PTX]
    environment = {**device.environment, **way.variables}
    return native.run_json([*command, way.calls, LAUNCHES], environment)


def _clocks(runs: list[dict[str, Any]]) -> list[Figure]:
    errors = [ns / 1e3 for one in runs for ns in one["error"]]
    return [
        Figure("smallest step of the device's clock", min(one["step"] for one in runs) / 1e3, "µs"),
        median("error of matching the clocks, at most", errors, "µs"),
    ]


def _percentile(ordered: list[float], percent: int) -> float:
    return round(ordered[min(len(ordered) * percent // 100, len(ordered) - 1)], 3)
