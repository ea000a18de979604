"""Measures calls beside many objects, whose cost should not depend on the number of objects."""

from __future__ import annotations

import statistics

from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Result, Step, median

METHOD = (
    "Nanoseconds of a call in a process with so many objects of a kind; the calls visit the "
    "objects without locality. The cache of modules has no limit. Each process runs all kinds of "
    "calls with one number of objects, on a stub of HIP whose functions return at once."
)
NUMBERS = (10, 100, 1000, 10_000, 100_000)
ROUNDS = 5


def run(device: Device, repetitions: int, step: Step, numbers: tuple[int, ...] = NUMBERS) -> Result:
    """Runs a process for each number, ``repetitions`` times in turn."""
    native.need(native.RUNTIME)
    env = {
        **device.environment,
        "MGPU_RT_MANAGER": "off",
        "MGPU_RT_EXCLUSIVE": "on",
        "MGPU_RT_MODULE_LIMIT": "64G",
    }
    times: dict[tuple[str, int], list[float]] = {}
    for repetition in range(repetitions):
        for number in numbers:
            step(f"{number} objects, {repetition + 1} of {repetitions}")
            calls = max(200, 20_000_000 // (1000 + number) // 100)
            words = [native.program("objects", device.chip), "time", native.RUNTIME]
            for kind, taken in native.run_json([*words, number, calls, ROUNDS], env).items():
                times.setdefault((kind, number), []).append(statistics.median(taken))
    figures = [
        median(f"{kind}, {number} objects", samples, "ns")
        for (kind, number), samples in sorted(times.items(), key=lambda pair: pair[0][0])
    ]
    return Result("objects", device.title, METHOD, figures, on=device.name)
