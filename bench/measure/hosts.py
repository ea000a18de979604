"""Lowered programs in other hosts than their own: MLIR's JIT runner, and Python with PyTorch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import Process, turns
from bench.setup import hosts, native
from bench.setup.device import Device
from bench.setup.sides import ALONE, HOISTED, LLVM, OURS, STOCK, WORDS, Side, all_sides
from bench.show.figures import Figure, Result, Step, median, ratios

METHOD = (
    "mlir-runner compiles the program in its own process; Python has PyTorch in its process, with "
    "a context on the same device, and opens the program as a library. The loop by hand is a "
    f"program of its own. Microseconds an iteration, the device's work included: {ROUNDS}"
)
SIDES = (STOCK, LLVM, OURS, ALONE, HOISTED)
#: Where others may call HIP, against the loop by hand.
TARGETS = {"forum": 1.03, "churn": 0.95}
MOST = 10_000  # calls a round


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """``repetitions`` rounds of each side in turn, of each program in each host."""
    native.need(native.RUNTIME)
    sides = [side for side in all_sides(device, llvm_runtime) if side.name in SIDES]
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for host, releases in hosts.RELEASES.items():
        for llvm in releases:
            for program in TARGETS:
                title = f"{program} in {host}, LLVM {llvm}"
                step(title)
                processes = {
                    side.name: _process(program, host, llvm, device, side) for side in sides
                }
                taken = turns(processes, repetitions, MOST, random.Random(title))
                each = device.iterations.get(program, 1)
                samples = {side: [ns / 1e3 / each for ns in calls] for side, calls in taken.items()}
                figures += _figures(title, samples, TARGETS[program] if device.real else None)
                label = {"program": program, "host": host, "llvm": llvm}
                data += [
                    {**label, "side": side, "us": median("", times, "").value}
                    for side, times in samples.items()
                ]
    return Result("hosts", device.words, METHOD, figures, on=device.name, data=data)


def _process(program: str, host: str, llvm: int, device: Device, side: Side) -> Process:
    """The host, or the loop by hand in a program of its own."""
    if side.name != HOISTED:
        return hosts.command(host, program, llvm, device, side.runtime), side.environment
    command = side.command(program, llvm, device)
    assert command is not None
    return command, side.environment


def _figures(title: str, samples: Mapping[str, list[float]], target: float | None) -> list[Figure]:
    figures = [median(f"{title}, {WORDS[side]}", times, "µs") for side, times in samples.items()]
    pairs = ((OURS, HOISTED, target), (ALONE, HOISTED, None), (LLVM, OURS, None))
    return figures + [
        median(
            f"{title}, {WORDS[side]} / {WORDS[base]}",
            ratios(samples[side], samples[base]),
            "",
            at_most=limit,
        )
        for side, base, limit in pairs
        if side in samples and base in samples
    ]
