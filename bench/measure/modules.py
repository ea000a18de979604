"""Measures a program that holds 200 modules and launches kernels of 5 modules."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import LLVM, OURS, STOCK, all_sides
from bench.show.figures import Figure, Result, Step, median

USED = 5
METHOD = (
    "Milliseconds from the first load to the end of the last launch, in a fresh process whose HIP "
    f"has started: the program loads 200 modules, then launches a kernel of {USED} of them and "
    "waits for each. Medians over processes, all sides in random order."
)
SIDES = (STOCK, LLVM, OURS)


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """Measures ``repetitions`` fresh processes of each side."""
    native.need(native.RUNTIME)
    sides = [side for side in all_sides(device, llvm_runtime) if side.name in SIDES]
    ways = {
        f"{side.title}{_words(loading)}": (side.runtime, {**side.environment, **loading})
        for loading in _driver_loading(device)
        for side in sides
    }
    times: dict[str, list[float]] = {words: [] for words in ways}
    program = native.program("modules", device.chip)
    for number in range(repetitions):
        step(f"200 modules, {number + 1} of {repetitions}")
        for words in random.sample(list(ways), len(ways)):
            runtime, environment = ways[words]
            times[words].append(native.run_json([program, runtime, USED], environment)["ns"])
    figures: list[Figure] = [
        median(f"200 modules, {USED} used, {words}", [ns / 1e6 for ns in samples], "ms")
        for words, samples in times.items()
    ]
    return Result("modules", device.title, METHOD, figures, on=device.name)


def _driver_loading(device: Device) -> list[dict[str, str]]:
    """Returns the environment in which NVIDIA's driver loads modules lazily or at once."""
    if device.name != "cuda":
        return [{}]
    return [{"CUDA_MODULE_LOADING": way} for way in ("EAGER", "LAZY")]


def _words(variables: Mapping[str, str]) -> str:
    return "".join(f", {name}={value}" for name, value in variables.items())
