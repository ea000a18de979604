"""Measures threads that load, allocate, copy, launch and free concurrently, on one device and on
several devices."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import EXCLUSIVE, HOISTED, LLVM, OURS, STOCK, TITLES, all_sides
from bench.show.figures import Figure, Result, Step, median

METHOD = (
    "Microseconds an iteration until the last thread is done: each thread creates a stream, "
    "allocates 4 KB, copies it in, loads the forum's module, launches, copies out, frees, waits, "
    "and gives stream and module back. By hand: module, stream and memory are kept. Processes of "
    "all sides in random order; medians over rounds of {iterations} iterations."
)
SIDES = (STOCK, LLVM, OURS, EXCLUSIVE, HOISTED)
WITHIN = 1.05  # relative to by hand
ROUNDS, ITERATIONS = 10, 200
EMULATED_ROUNDS, EMULATED_ITERATIONS = 3, 10


def run(
    device: Device, repetitions: int, most: int, llvm_runtime: Path | None, step: Step
) -> Result:
    """Runs 1, 2, 4 ... ``most`` threads on one device, and on all devices if there are several.

    Each runtime runs in ``repetitions`` processes.
    """
    native.need(native.RUNTIME)
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for devices in sorted({1, device.count}):
        for threads in (count for count in (1, 2, 4, 8) if count <= most):
            step(f"{threads} threads on {devices} devices")
            times = _times(device, repetitions, (threads, devices), llvm_runtime)
            words = f"{_count(threads, 'thread')} on {_count(devices, 'device')}"
            new = _figures(words, times, WITHIN if device.real else None)
            figures += new
            data += [
                {"side": side, "threads": threads, "devices": devices, "us": figure.value}
                for side, figure in zip(times, new, strict=False)
            ]
    method = METHOD.format(iterations=ITERATIONS if device.real else EMULATED_ITERATIONS)
    return Result("devices", device.title, method, figures, on=device.name, data=data)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number > 1 else ''}"


def _times(
    device: Device, repetitions: int, shape: tuple[int, int], llvm_runtime: Path | None
) -> dict[str, list[float]]:
    program = native.program("devices", device.chip)
    rounds, iterations = (
        (ROUNDS, ITERATIONS) if device.real else (EMULATED_ROUNDS, EMULATED_ITERATIONS)
    )
    sides = [side for side in all_sides(device, llvm_runtime) if side.name in SIDES]
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for _ in range(repetitions):
        for side in random.sample(sides, len(sides)):
            runtime = "-" if side.name == HOISTED else side.runtime
            command = [program, device.hip, runtime, *shape, rounds, iterations]
            times[side.name] += native.run_json(command, side.environment)
    return times


def _figures(words: str, times: Mapping[str, list[float]], target: float | None) -> list[Figure]:
    """Returns the time of each side, in order. The last figure compares this library with the loop
    by hand: the ratio of their times, with MGPU_RT_EXCLUSIVE=on."""
    figures = [
        median(f"{words}, {TITLES[side]}", [ns / 1e3 for ns in samples], "µs")
        for side, samples in times.items()
    ]
    by_hand = figures[-1].value
    exclusive = figures[list(times).index(EXCLUSIVE)].value
    name = f"{words}, {TITLES[EXCLUSIVE]} / {TITLES[HOISTED]}"
    return [*figures, Figure(name, exclusive / by_hand, "", at_most=target)]
