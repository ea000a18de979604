"""Measures the lowered programs with all runtimes: the time of an iteration, and the runtimes'
ratios.

Each runtime has its own process, which runs several rounds. A round runs in each process in turn,
so any disturbance of the machine affects all runtimes alike.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.measure import Request, compare
from bench.measure.compare import Ratio, Samples
from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import MOST, turns
from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import (
    EXCLUSIVE,
    HOISTED,
    LAZY,
    LLVM,
    OURS,
    STOCK,
    Side,
    all_sides,
)
from bench.show.figures import Figure, Result

#: Restarts the processes after this many turns, because the memory layout of a process can make all
#: its rounds faster.
ROUNDS_A_PROCESS = 5
METHOD = (
    f"Microseconds an iteration, the device's work included: {ROUNDS} After {ROUNDS_A_PROCESS} "
    "rounds there are new processes."
)
RELEASES = (19, 22)
NEVER_SLOWER = ("forkjoin", "forkjoin-nowait", "grow", "ragged")


@dataclass(frozen=True)
class Program:
    """A program of bench/programs; the harness calls a program without a loop repeatedly."""

    name: str
    launches: int  # an iteration
    most: int = MOST  # calls in a round
    at_once: int = 1  # processes that run it, each round at once

    @property
    def title(self) -> str:
        """The name in the tables."""
        return self.name if self.at_once == 1 else f"{self.name}, {self.at_once} processes"


PROGRAMS = (
    Program("forum", 1),
    Program("churn", 1),
    Program("spin", 2),
    Program("forkjoin", 3, most=2),  # never destroys two of its three streams
    Program("forkjoin-nowait", 3, most=1),
    Program("grow", 4, most=1),  # all sides must begin a round with as many rows
    Program("ragged", 2),
)
#: As ranks of a launcher do. The processes share a GPU, so all run for one side at a time.
PROCESSES = (Program("churn", 1, at_once=8), Program("ragged", 2, at_once=8))


#: For some programs and releases, a ratio that a GPU is expected to show. STOCK is this library
#: with MGPU_RT_CACHE=off. A target with LLVM counts only if the user passes LLVM's own library
#: (`--llvm-runtime`).
TARGETS = (
    (("forum",), RELEASES, Ratio(EXCLUSIVE, HOISTED, at_most=1.03)),
    (("churn",), RELEASES, Ratio(EXCLUSIVE, HOISTED, at_most=0.85)),
    (("churn",), (19,), Ratio(STOCK, EXCLUSIVE, at_least=5.5)),
    (("churn", "forum"), (19,), Ratio(STOCK, OURS, at_least=4.0)),
    (("churn",), (19,), Ratio(LLVM, OURS, at_least=4.0)),
    (("forum",), (22,), Ratio(STOCK, OURS, at_least=1.8)),
    (("forum",), RELEASES, Ratio(LAZY, HOISTED, at_most=0.45)),
    (("spin",), RELEASES, Ratio(OURS, STOCK, at_most=1.03)),
    (NEVER_SLOWER, RELEASES, Ratio(OURS, STOCK, at_most=1.0)),
)
#: Ratios that are shown on every device.
SHOWN = (
    Ratio(OURS, HOISTED),
    Ratio(EXCLUSIVE, HOISTED),
    Ratio(STOCK, OURS),
    Ratio(LLVM, OURS),
    Ratio(LAZY, HOISTED),
)


def run(asked: Request) -> Result:
    """Measures all programs; each runtime gets rounds in turn."""
    return _run("programs", PROGRAMS, asked)


def run_processes(asked: Request) -> Result:
    """Measures programs that run in several processes at once. A time is that of the slowest."""
    return _run("processes", PROCESSES, asked)


def _run(name: str, some: Sequence[Program], asked: Request) -> Result:
    native.need(native.RUNTIME)
    device = asked.device
    sides = all_sides(device, asked.llvm_runtime)
    result = Result(name, device.title, METHOD, on=device.name)
    for program in some:
        if program.name == "spin" and device.name == "stub":
            continue  # no work runs on the stream
        for llvm in RELEASES:
            label = {"program": program.title, "launches": program.launches, "llvm": llvm}
            try:
                samples = measure(program, llvm, asked, sides)
            except native.Failed as failed:  # the other programs' results stay
                result.data.append({**label, "failed": str(failed)})
                continue
            result.data.extend(compare.rows(label, samples))
            result.figures.extend(_figures(program, llvm, device, samples))
    return result


def measure(
    program: Program, llvm: int, asked: Request, sides: Sequence[Side]
) -> dict[str, list[float]]:
    """For each runtime, returns the microseconds of an iteration in each round."""
    samples: dict[str, list[float]] = {}
    device, repetitions = asked.device, asked.repetitions
    rounds = min(repetitions, ROUNDS_A_PROCESS)
    order = random.Random(f"{program.name} {llvm}")
    for done in range(0, repetitions, rounds):
        asked.step(f"{program.title}, LLVM {llvm}, {done} of {repetitions}")
        first = done // rounds % len(sides)  # no side's process is always the first or the last
        processes = {
            side.name: (side.command(program.name, llvm, device), _environment(side, program))
            for side in (*sides[first:], *sides[:first])
        }
        count = min(rounds, repetitions - done)
        iterations = device.iterations.get(program.name, 1)
        taken = turns(processes, count, order, program.most, iterations, program.at_once)
        for name, more in taken.items():
            samples.setdefault(name, []).extend(more)
    return samples


def _environment(side: Side, program: Program) -> Mapping[str, str]:
    """Without the processor to which a side's process is pinned, if several run at once."""
    if program.at_once == 1:
        return side.environment
    return {name: value for name, value in side.environment.items() if name != "BENCH_CPU"}


def _figures(program: Program, llvm: int, device: Device, samples: Samples) -> list[Figure]:
    title = f"{program.title}, LLVM {llvm}"
    chosen = [
        ratio for names, releases, ratio in TARGETS if program.title in names and llvm in releases
    ]
    pairs = {(pair.side, pair.base): pair for pair in (*SHOWN, *chosen)}
    return compare.figures(title, samples, pairs.values(), device.real)
