"""Measures the library's gain on this machine: the times of loops in three modes."""

from __future__ import annotations

import contextlib
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mgpu_rt._cli.child import GRACE
from mgpu_rt._selftest.bundle import library_name
from mgpu_rt._selftest.machine import EMULATED, MEASURE, Machine
from mgpu_rt._selftest.result import STOCK, Result, Timing
from mgpu_rt._selftest.right import OFF, failures

SIDES: dict[str, dict[str, str]] = {
    STOCK: OFF,
    "library": {},
    "lazy": {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
}
#: For each loop: the program, the program's LLVM release, and the iterations per call.
LOOPS = (("forum", 19, 20), ("forum", 22, 20), ("churn", 22, 20), ("layers", 22, 10))
ROUND = 0.05  # seconds that a round should take
ROUNDS = 25  # of each side, at most
LEAST = 5
ANSWER = 60.0  # seconds for a round, after which the GPU counts as hanging


class Hung(Exception):
    """Raised if a process did not answer; the message names the process."""


class Untimed(Exception):
    """Raised if a process ended, or if calls in the process failed: such a process yields no valid
    times. The message names the process."""


class _Loop:
    """A process that runs a program as often as requested."""

    is_late = False

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], name: str) -> None:
        self.name = name
        self.err = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [str(MEASURE), *words],
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=self.err,
            encoding="utf-8",
        )

    def round(self, calls: int) -> float:
        """Runs the requested number of calls, and returns the nanoseconds that the calls took.
        Raises Hung or Untimed."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        late = threading.Timer(ANSWER, self._end)
        late.start()
        try:
            stdin.write(f"{calls}\n")
            stdin.flush()
            return float(stdout.readline())
        except (OSError, ValueError):
            if self.is_late:
                raise Hung(f"{self.name}: its process did not answer") from None
            raise Untimed(f"{self.name}: its process ended{self._last_words()}") from None
        finally:
            late.cancel()

    def _end(self) -> None:
        self.is_late = True
        self.process.kill()

    def end(self) -> None:
        """Leaves no running process behind, even after Ctrl-C."""
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE)

    def _last_words(self) -> str:
        said = [line for line in self._said() if line.strip()]
        return f": {said[-1]}" if said else ""

    def _said(self) -> list[str]:
        self.err.seek(0)
        return self.err.read().splitlines()

    def check(self) -> None:
        """Raises Untimed if calls have failed."""
        if failed := failures(self._said()):
            raise Untimed(f"{self.name}: {len(failed)} calls failed: {failed[0]}")


def measure(
    machine: Machine,
    folder: Path,
    result: Result,
    seconds: float,
    step: Callable[[str], None],
) -> None:
    """Fills the fields `fast`, `advice` and `untimed` of `result`. Raises Hung."""
    order = random.Random(28)
    for number, (program, llvm, iterations) in enumerate(LOOPS):
        step(f"timing: {program}, LLVM {llvm}, in {len(SIDES)} ways")
        words = ["rounds", str(folder / library_name(llvm)), program]
        until = time.monotonic() + seconds / len(LOOPS)
        try:
            with _loops(words, machine.environment, f"{program}, LLVM {llvm}") as loops:
                taken = _rounds(loops, until, order)
        except Untimed as why:
            result.untimed.append(str(why))
            continue
        for side, (samples, calls) in taken.items():
            us = sorted(ns / calls / iterations / 1000 for ns in samples)
            tenth = len(us) // 10
            middle = round(statistics.median(us), 3)
            low, high = round(us[tenth], 3), round(us[-1 - tenth], 3)
            result.fast.append(Timing(program, llvm, side, middle, low, high, len(us)))
        if result.device.get("driver") != EMULATED:
            result.advice = advice(result.fast)
        step(f"timing: {number + 1} of {len(LOOPS)} loops done")


@contextlib.contextmanager
def _loops(
    words: Sequence[str], environment: Mapping[str, str], name: str
) -> Iterator[dict[str, _Loop]]:
    with contextlib.ExitStack() as stack:
        loops = {}
        for side, options in SIDES.items():
            loop = _Loop(words, {**environment, **options}, f"{name}, {side}")
            stack.enter_context(loop.err)
            stack.callback(loop.end)
            loops[side] = loop
        yield loops


def _rounds(
    loops: Mapping[str, _Loop], until: float, order: random.Random
) -> dict[str, tuple[list[float], int]]:
    """Returns the timing samples of each side, and the number of calls in one sample. In each turn,
    every side is timed once, in random order."""
    calls = {}
    for side, loop in loops.items():
        loop.round(1)  # this starts HIP
        loop.check()
        fastest = min(loop.round(1) for _ in range(5))
        calls[side] = max(1, int(ROUND * 1e9 / max(fastest, 1)))
    taken: dict[str, list[float]] = {side: [] for side in loops}
    for turn in range(ROUNDS):
        if turn >= LEAST and time.monotonic() > until:
            break
        sides = list(loops)
        order.shuffle(sides)
        for side in sides:
            taken[side].append(loops[side].round(calls[side]))
    for loop in loops.values():
        loop.check()
    return {side: (samples, calls[side]) for side, samples in taken.items()}


# ---- advice ----

WORTH = 0.05  # relative to the time; a smaller gain is no advice


def by_side(fast: Sequence[Timing]) -> dict[tuple[str, int], dict[str, Timing]]:
    """Groups the timings by program and LLVM release, and then by side."""
    found: dict[tuple[str, int], dict[str, Timing]] = {}
    for timing in fast:
        found.setdefault((timing.program, timing.llvm), {})[timing.side] = timing
    return found


def advice(fast: Sequence[Timing]) -> str:
    """Returns advice that follows from the timings; "" if there are no timings."""
    loops = by_side(fast)
    if not loops:
        return ""
    lines = [(key, sides) for key, sides in loops.items() if {"stock", "library"} <= sides.keys()]
    gain = max(sides["stock"].us / sides["library"].us for _, sides in lines)
    if gain < 1 + WORTH:
        return "The library gains nothing here: stock's behaviour is as fast."
    found = []
    for (program, llvm), sides in lines:
        spared = 1 - sides["lazy"].us / sides["library"].us if "lazy" in sides else 0
        if spared >= WORTH and sides["lazy"].high < sides["library"].low:
            found.append((spared, program, llvm))
    if not found:
        return "Leave the options as they are: none of them gains more than the spread here."
    spared, program, llvm = max(found)
    return (
        f"If nothing else in the process calls HIP, `mgpu-rt run --exclusive --lazy` saves "
        f"{spared:.0%} of the library's time for {program} (LLVM {llvm})."
    )
