"""Lowered programs in foreign hosts: MLIR's JIT runners, and Python with PyTorch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import Process, turns
from bench.setup import hosts, native
from bench.setup.device import Device
from bench.setup.sides import APART, EXCLUSIVE, HOISTED, LLVM, OURS, STOCK, TITLES, Side, all_sides
from bench.show.figures import Figure, Result, Step, median, ratios

METHOD = (
    "mlir-runner compiles the program in its own process, ExecutionEngine in a Python process; "
    "Python by itself opens the program as a library. Both have PyTorch in the process, with a "
    "context on the same device. The loop by hand is opened as a library by such a Python process, "
    "and beside mlir-runner a program of its own. Microseconds an iteration, the device's work "
    f"included: {ROUNDS}"
)
SIDES = (STOCK, LLVM, OURS, EXCLUSIVE, HOISTED)
#: The permitted ratios of this library's time to the time by hand. MGPU_RT_EXCLUSIVE is off,
#: because other code in a foreign process may call HIP.
TARGETS = {"forum": 1.03, "churn": 0.95}
MOST = 10_000  # calls in a round


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """Measures each program in each host; the sides take turns for ``repetitions`` rounds."""
    native.need(native.RUNTIME)
    sides = [side for side in all_sides(device, llvm_runtime) if side.name in SIDES]
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for host, releases in hosts.RELEASES.items():
        if reason := hosts.missing(host):
            data.append({"host": host, "left_out": reason})
            continue
        for llvm in releases:
            for program in TARGETS:
                title = f"{program} in {host}, LLVM {llvm}"
                step(title)
                processes = _processes(program, host, llvm, device, sides)
                taken = turns(processes, repetitions, MOST, random.Random(title))
                each = device.iterations.get(program, 1)
                samples = {side: [ns / 1e3 / each for ns in calls] for side, calls in taken.items()}
                figures += _figures(title, samples, TARGETS[program] if device.real else None)
                label = {"program": program, "host": host, "llvm": llvm}
                data += [
                    {**label, "side": side, "us": median("", times, "").value}
                    for side, times in samples.items()
                ]
    return Result("hosts", device.title, METHOD, figures, on=device.name, data=data)


def _processes(
    program: str, host: str, llvm: int, device: Device, sides: Sequence[Side]
) -> dict[str, Process]:
    """Returns the process of each side. If the loop by hand runs in the host, also returns a
    process that runs this loop as a separate program."""
    processes: dict[str, Process] = {
        side.name: (hosts.command(host, program, llvm, device, side.runtime), side.environment)
        for side in sides
        if side.name != HOISTED
    }
    by_hand = next(side for side in sides if side.name == HOISTED)
    own = by_hand.command(program, llvm, device)
    assert own is not None
    processes[HOISTED] = (hosts.by_hand(host, program, device) or own, by_hand.environment)
    if processes[HOISTED][0] is not own:
        processes[APART] = (own, by_hand.environment)
    return processes


def _figures(title: str, samples: Mapping[str, list[float]], target: float | None) -> list[Figure]:
    figures = [median(f"{title}, {TITLES[side]}", times, "µs") for side, times in samples.items()]
    pairs = (
        (OURS, HOISTED, target),
        (EXCLUSIVE, HOISTED, None),
        (APART, HOISTED, None),
        (LLVM, OURS, None),
    )
    return figures + [
        median(
            f"{title}, {TITLES[side]} / {TITLES[base]}",
            ratios(samples[side], samples[base]),
            "",
            at_most=limit,
        )
        for side, base, limit in pairs
        if side in samples and base in samples
    ]
