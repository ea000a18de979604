"""Lowered programs in other hosts than their own: MLIR's JIT runner, and Python with PyTorch."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure.programs import METHOD as ROUNDS
from bench.measure.rounds import Runner, turns
from bench.setup import hosts, native
from bench.setup.device import Device
from bench.setup.sides import ALONE, HOISTED, LLVM, OURS, STOCK, WORDS, Side, all_sides
from bench.show.figures import Figure, Result, Step, median, ratios

METHOD = (
    "mlir-runner compiles the program in its own process; Python has PyTorch in its process, with "
    "a context on the same device, and opens the program as a library. The loop by hand is a "
    f"program of its own. {ROUNDS}"
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
                with _started(program, host, llvm, device, sides) as runners:
                    taken = turns(runners, repetitions, MOST, random.Random(title))
                each = device.iterations.get(program, 1)
                samples = {side: [ns / 1e3 / each for ns in calls] for side, calls in taken.items()}
                figures += _figures(title, samples, TARGETS[program] if device.real else None)
                label = {"program": program, "host": host, "llvm": llvm}
                data += [
                    {**label, "side": side, "us": median("", times, "").value}
                    for side, times in samples.items()
                ]
    return Result("hosts", device.words, METHOD, figures, on=device.name, data=data)


@contextlib.contextmanager
def _started(
    program: str, host: str, llvm: int, device: Device, sides: Sequence[Side]
) -> Iterator[dict[str, Runner]]:
    """A host for each side, and a program of its own for the loop by hand."""
    runners: dict[str, Runner] = {}
    try:
        for side in sides:
            if side.name == HOISTED:
                command = side.command(program, llvm, device)
                assert command is not None
            else:
                runtime = hosts.runtime_of(side.environment)
                command = hosts.command(host, program, llvm, device, runtime)
            runners[side.name] = Runner(command, side.environment)
        yield runners
        for runner in runners.values():
            runner.close()
    finally:
        for runner in runners.values():
            runner.kill()


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
