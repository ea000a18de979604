"""Measures the lowered programs with all runtimes: the time of an iteration, and the runtimes'
ratios.

Each runtime has its own process, which runs several rounds. A round runs in each process in turn,
so any disturbance of the machine affects all runtimes alike.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import Process, turns
from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import (
    EXCLUSIVE,
    HOISTED,
    LAZY,
    LLVM,
    NO_EVENTS,
    OURS,
    SERIAL,
    STOCK,
    TITLES,
    Side,
    all_sides,
)
from bench.show.figures import Figure, Result, Step, median, ratios

#: Restarts the processes after this many turns, because the memory layout of a process can make all
#: its rounds faster.
ROUNDS_A_PROCESS = 5
METHOD = (
    f"Microseconds an iteration, the device's work included: {ROUNDS} After {ROUNDS_A_PROCESS} "
    "rounds there are new processes."
)
RELEASES = (19, 22)


@dataclass(frozen=True)
class Program:
    """A program of bench/programs; the harness calls a program without a loop repeatedly."""

    name: str
    launches: int  # an iteration
    most: int = 10_000  # calls in a round


PROGRAMS = (
    Program("forum", 1),
    Program("many", 50),
    Program("churn", 1),
    Program("vecadd", 1),
    Program("events", 3, most=20),  # the program never destroys its streams and blocks
    Program("overlap", 2),
    Program("spin", 2),
    Program("fanin", 4),
    Program("forkjoin", 3, most=10),  # never destroys two of its three streams
    Program("forkjoin-nowait", 3, most=1),
    Program("grow", 4, most=1),  # all sides must begin a round with as many rows
    Program("ragged", 2),
)


@dataclass(frozen=True)
class Target:
    """A ratio of two runtimes' times that a GPU is expected to show."""

    program: str
    side: str
    base: str
    at_most: float | None = None
    at_least: float | None = None
    releases: Sequence[int] = RELEASES


#: STOCK is this library with MGPU_RT_CACHE=off. A target with LLVM counts only if the user passes
#: LLVM's own library (`--llvm-runtime`).
TARGETS = (
    Target("forum", EXCLUSIVE, HOISTED, at_most=1.03),
    Target("many", EXCLUSIVE, HOISTED, at_most=1.03),
    Target("churn", EXCLUSIVE, HOISTED, at_most=0.85),
    Target("vecadd", EXCLUSIVE, HOISTED, at_most=1.3),
    Target("churn", STOCK, EXCLUSIVE, at_least=5.5, releases=(19,)),
    Target("churn", STOCK, OURS, at_least=4.0, releases=(19,)),
    Target("churn", LLVM, OURS, at_least=4.0, releases=(19,)),
    Target("forum", STOCK, OURS, at_least=4.0, releases=(19,)),
    Target("forum", STOCK, OURS, at_least=1.8, releases=(22,)),
    Target("forum", LAZY, HOISTED, at_most=0.45),
    Target("spin", OURS, STOCK, at_most=1.03),
    Target("forkjoin", OURS, STOCK, at_most=1.0),
    Target("forkjoin-nowait", OURS, STOCK, at_most=1.0),
    Target("grow", OURS, STOCK, at_most=1.0),
    Target("ragged", OURS, STOCK, at_most=1.0),
)
#: Ratios that are shown on every device, with or without a target.
SHOWN = (
    (OURS, HOISTED),
    (EXCLUSIVE, HOISTED),
    (STOCK, OURS),
    (LLVM, OURS),
    (LAZY, HOISTED),
    (NO_EVENTS, OURS),
)
#: On the emulated device, whose driver is slow, the forum's program takes at most a hundredth of
#: stock's time.
EMULATED_TARGETS = (Target("forum", OURS, STOCK, at_most=0.01),)


def run(device: Device, repetitions: int, llvm_runtime: Path | None, step: Step) -> Result:
    """Measures all programs; each runtime gets ``repetitions`` rounds in turn."""
    native.need(native.RUNTIME)
    sides = all_sides(device, llvm_runtime)
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for program in PROGRAMS:
        if program.name == "spin" and device.name == "stub":
            continue  # no work runs on the stream
        for llvm in RELEASES:
            samples = measure(program, llvm, device, sides, repetitions, step)
            figures += _figures(program, llvm, device, samples)
            data += [_datum(program, llvm, side, taken) for side, taken in samples.items()]
    return Result("programs", device.title, METHOD, figures, on=device.name, data=data)


def _datum(program: Program, llvm: int, side: str, samples: list[float]) -> dict[str, Any]:
    figure = median("", samples, "")
    return {
        "program": program.name,
        "launches": program.launches,
        "llvm": llvm,
        "side": side,
        "us": figure.value,
        "low": figure.low,
        "high": figure.high,
    }


def measure(
    program: Program,
    llvm: int,
    device: Device,
    sides: Sequence[Side],
    repetitions: int,
    step: Step,
) -> dict[str, list[float]]:
    """For each runtime, returns the microseconds of an iteration in each round."""
    samples: dict[str, list[float]] = {}
    rounds = min(repetitions, ROUNDS_A_PROCESS)
    order = random.Random(f"{program.name} {llvm}")
    for done in range(0, repetitions, rounds):
        step(f"{program.name}, LLVM {llvm}, {done} of {repetitions}")
        first = done // rounds % len(sides)  # no side's process is always the first or the last
        processes = _processes(program, llvm, device, [*sides[first:], *sides[:first]])
        count = min(rounds, repetitions - done)
        for name, taken in turns(processes, count, program.most, order).items():
            samples.setdefault(name, []).extend(
                ns / 1e3 / _iterations(program, device) for ns in taken
            )
    return samples


def _iterations(program: Program, device: Device) -> int:
    """Returns the iterations of one call of a program's main."""
    return device.iterations.get(program.name, 1)


def _processes(
    program: Program, llvm: int, device: Device, sides: Sequence[Side]
) -> dict[str, Process]:
    """Returns a process for each runtime that can run the program."""
    processes: dict[str, Process] = {}
    for side in sides:
        command = side.command(program.name, llvm, device)
        if command is not None:
            processes[side.name] = (command, side.environment)
    if program.name == "spin":
        hoisted = next(side for side in sides if side.name == HOISTED)
        command = hoisted.command(SERIAL, llvm, device)
        assert command is not None
        processes[SERIAL] = (command, hoisted.environment)
    return processes


def _figures(
    program: Program, llvm: int, device: Device, samples: Mapping[str, list[float]]
) -> list[Figure]:
    title = f"{program.name}, LLVM {llvm}"
    figures = [median(f"{title}, {TITLES[side]}", taken, "µs") for side, taken in samples.items()]
    targets = TARGETS if device.real else EMULATED_TARGETS if device.name == "softgpu" else ()
    chosen = [t for t in targets if t.program == program.name and llvm in t.releases]
    pairs = {(t.side, t.base): t for t in chosen}
    for side, base in {**dict.fromkeys(SHOWN), **dict.fromkeys(pairs)}:
        if side in samples and base in samples:
            target = pairs.get((side, base))
            figures.append(
                median(
                    f"{title}, {TITLES[side]} / {TITLES[base]}",
                    ratios(samples[side], samples[base]),
                    "",
                    at_most=target.at_most if target else None,
                    at_least=target.at_least if target else None,
                )
            )
    if SERIAL in samples:
        figures += [
            median(
                f"{title}, one stream / two streams, {TITLES[side]}",
                ratios(samples[SERIAL], samples[side]),
                "",
            )
            for side in (STOCK, LLVM, OURS)
            if side in samples
        ]
    return figures
