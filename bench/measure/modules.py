"""A program that holds 200 modules and uses 5: what MGPU_RT_LOAD=lazy saves."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import LLVM, OURS, STOCK, WORDS
from bench.show.figures import Figure, Result, Step, median

USED = 5
METHOD = (
    "Milliseconds from the first load to the end of the last launch, in a fresh process whose HIP "
    f"has started: the program loads 200 modules, then launches a kernel of {USED} of them and "
    "waits for each. Medians over processes, all sides in random order."
)
LAZY_LOAD = "mgpu_rt, MGPU_RT_LOAD=lazy"


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """``repetitions`` fresh processes of each side."""
    native.need(native.RUNTIME)
    ways = {
        f"{words}{suffix}": (runtime, {**environment, **loading})
        for suffix, loading in _driver_loading(device).items()
        for words, runtime, environment in _sides(device, llvm_runtime)
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
    return Result("modules", device.words, METHOD, figures, on=device.name)


def _driver_loading(device: Device) -> dict[str, dict[str, str]]:
    """NVIDIA's driver can itself put off what it loads of a module."""
    if device.name != "cuda":
        return {"": {}}
    return {
        f", CUDA_MODULE_LOADING={way}": {"CUDA_MODULE_LOADING": way} for way in ("EAGER", "LAZY")
    }


def _sides(device: Device, llvm_runtime: Path | None) -> list[tuple[str, Path, Mapping[str, str]]]:
    base = device.environment
    sides = [(WORDS[STOCK], native.RUNTIME, {**base, "MGPU_RT_CACHE": "off"})]
    if llvm_runtime is not None and device.real:
        sides.append((WORDS[LLVM], llvm_runtime, base))
    sides.append((WORDS[OURS], native.RUNTIME, base))
    return [*sides, (LAZY_LOAD, native.RUNTIME, {**base, "MGPU_RT_LOAD": "lazy"})]
