"""Measures the time from the start of a process to its end, for different numbers of launches."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import TITLES, all_sides
from bench.show.figures import Result, Step, median

METHOD = (
    "Milliseconds from the start of a fresh process to the end of so many launches of the forum's "
    "program (LLVM 19), the driver's initialisation and Python's included."
)
COUNTS = (1, 10, 100, 1000, 10_000)
EMULATED_COUNTS = COUNTS[:-1]


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """Measures ``repetitions`` processes of each runtime in turn."""
    native.need(native.RUNTIME)
    counts = EMULATED_COUNTS if device.name == "softgpu" else COUNTS
    single = dataclasses.replace(device, iterations={"forum": 1})
    sides = all_sides(device, llvm_runtime)
    times: dict[str, list[list[float]]] = {side.name: [] for side in sides}
    for number in range(repetitions):
        for side in sides:
            step(f"{side.title}, {number + 1} of {repetitions}")
            command = side.command("forum", 19, single)
            assert command is not None
            begin = time.monotonic_ns()
            grown = native.run_json([*command, begin, *counts], side.environment)
            times[side.name].append([ns / 1e6 for ns in grown])
    figures, data = [], []
    for name, processes in times.items():
        for count, samples in zip(counts, zip(*processes, strict=True), strict=True):
            words = f"{TITLES[name]}, {count} launch{'es' if count > 1 else ''}"
            figure = median(words, samples, "ms")
            figures.append(figure)
            data.append({"side": name, "launches": count, "ms": figure.value})
    return Result("growth", device.title, METHOD, figures, on=device.name, data=data)
