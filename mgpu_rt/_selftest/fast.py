"""Measures the library's gain on this machine: the times of loops in three modes."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from mgpu_rt._cli import child
from mgpu_rt._selftest.bundle import library_name
from mgpu_rt._selftest.machine import EMULATED, MEASURE, Machine
from mgpu_rt._selftest.result import STOCK, Result, Timing
from mgpu_rt._selftest.right import LIMIT, OFF, failures

SIDES: dict[str, dict[str, str]] = {
    STOCK: OFF,
    "library": {},
    "lazy": {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
}
#: For each loop: the program, the program's LLVM release, and the iterations per call.
LOOPS = (("forum", 19, 20), ("forum", 22, 20), ("churn", 22, 20), ("layers", 22, 10))
TURNS = 5  # processes of each side; over an emulated driver, which times no GPU, one
ROUNDS = 5  # samples of each process


class Untimed(Exception):
    """Raised if a process yields no valid times; the message names the process and the reason."""


def measure(machine: Machine, folder: Path, result: Result, step: Callable[[str], None]) -> None:
    """Fills the fields `fast` and `untimed` of `result`. After a process that hung, sets
    `ended` and measures nothing more."""
    order = random.Random(28)
    emulated = result.device.get("driver") == EMULATED
    for number, (program, llvm, iterations) in enumerate(LOOPS):
        step(f"timing: {program}, LLVM {llvm}, loop {number + 1} of {len(LOOPS)}")
        command = [str(MEASURE), "rounds", str(folder / library_name(llvm)), program, str(ROUNDS)]
        try:
            taken = _turns(command, machine, order, 1 if emulated else TURNS)
        except Untimed as why:
            result.untimed.append(f"{program}, LLVM {llvm}, {why}")
            if child.HUNG in str(why):
                result.ended = f"hung: {result.untimed[-1]}"
                return
            continue
        for side, samples in taken.items():
            us = sorted(ns / iterations / 1000 for ns in samples)
            tenth = len(us) // 10
            middle = round(statistics.median(us), 3)
            low, high = round(us[tenth], 3), round(us[-1 - tenth], 3)
            result.fast.append(Timing(program, llvm, side, middle, low, high, len(us)))


def _turns(
    command: Sequence[str], machine: Machine, order: random.Random, turns: int
) -> dict[str, list[float]]:
    """Returns the nanoseconds per call, by side. In each turn, a process of each side runs the loop
    in rounds; the sides have random order. Raises Untimed."""
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(turns):
        for side in order.sample(list(SIDES), len(SIDES)):
            environment = {**machine.environment, **SIDES[side]}
            ended = child.run(command, environment, limit=LIMIT, **child.PIPES)
            lines = ended.stderr.splitlines()
            if ended.how:
                raise Untimed(": ".join([side, ended.how, *lines[-1:]]))
            if failed := failures(lines):
                raise Untimed(f"{side}: {len(failed)} calls failed: {failed[0]}")
            taken[side] += map(float, ended.stdout.split())
    return taken


def by_side(fast: Sequence[Timing]) -> dict[tuple[str, int], dict[str, Timing]]:
    """Groups the timings by program and LLVM release, and then by side."""
    found: dict[tuple[str, int], dict[str, Timing]] = {}
    for timing in fast:
        found.setdefault((timing.program, timing.llvm), {})[timing.side] = timing
    return found
