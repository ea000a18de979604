"""Whether threads that launch at once keep the speed that each has alone."""

from __future__ import annotations

import os
import statistics

from bench import native
from bench.calls import DEVICE
from bench.figures import Result, Step, median

METHOD = (
    "Each thread is pinned to a processor and runs the forum's loop alone and together with the "
    "others, in turn; the slowdown is the worst thread's, from its medians, in percent. The "
    "hoisted loop shares nothing at all, so its slowdown is the machine's."
)
TARGET = 15.0  # percent
ITERATIONS = 2000
LOOPS = (("7", "LLVM 13 to 20"), ("5", "LLVM 21 to 24"))


def run(repetitions: int, threads: int, step: Step) -> Result:
    """Measures 1 and ``threads`` threads; ``repetitions`` is the number of rounds."""
    native.need(native.RUNTIME, native.STUB)
    step(f"{threads} threads in their own loops")
    processors = len(os.sched_getaffinity(0))
    times = native.run_json(
        [native.program("threads"), native.STUB, native.RUNTIME, threads, repetitions, ITERATIONS],
        native.stub_environment(),
    )
    method = METHOD
    if threads > processors:
        method += f" Here {threads} threads share {processors} processors."
    figures = []
    for calls, release in LOOPS:
        alone = [sample for thread in times[calls]["alone"] for sample in thread]
        together = [sample for thread in times[calls]["together"] for sample in thread]
        figures.append(median(f"{release}, 1 thread", alone, "ns"))
        figures.append(median(f"{release}, {threads} threads", together, "ns"))
        figures.append(_slowdown(f"{release}, {threads} threads", times[calls], TARGET))
    figures.append(_slowdown(f"hoisted, {threads} threads", times["2"], None))
    return Result("threads", DEVICE, method, figures)


def _slowdown(name: str, times: dict[str, list[list[float]]], target: float | None):
    def percent(alone: list[float], together: list[float]) -> list[float]:
        base = statistics.median(alone)
        return [100 * (time / base - 1) for time in together]

    slowdowns = [
        median(f"{name}, slowdown", percent(*pair), "%", at_most=target)
        for pair in zip(times["alone"], times["together"], strict=True)
    ]
    return max(slowdowns, key=lambda figure: figure.value)
