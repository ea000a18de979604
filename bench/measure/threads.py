"""Measures threads that launch concurrently, each in its own loop, compared with one thread."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence

from bench.measure import Request
from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, median

METHOD = (
    "Each thread is pinned to a processor and runs the forum's loop by itself and together with "
    "the others, in turn. Throughput is the sum over the threads; scaling is that over the "
    "throughput of one thread; the slowdown is the worst thread's, from its medians, in percent. "
    "The hoisted loop shares nothing at all on the stub, so its slowdown is the machine's."
)
SLOWDOWN = 15.0  # percent, of two threads
SCALING = 13.0  # of 16 threads, if there are 16 processors
ITERATIONS = 2000
DEVICE_ITERATIONS = 100
LOOPS = (("7", "LLVM 13 to 20"), ("5", "LLVM 21 to 24"), ("2", "hoisted"))

Times = dict[str, list[list[float]]]


def run(asked: Request) -> Result:
    """Measures 1, 2, 4 ... threads, up to the number that was asked for."""
    native.need(native.RUNTIME)
    device, most = asked.device, asked.threads
    processors = len(os.sched_getaffinity(0))
    method = METHOD
    if most > processors:
        method += f" Here up to {most} threads share {processors} processors."
    figures: list[Figure] = []
    for threads in _numbers(most):
        asked.step(f"{threads} threads in their own loops")
        times = _times(device, threads, asked.repetitions)
        for calls, release in LOOPS:
            figures += _figures(device, f"{release}, {threads} threads", times[calls], threads)
    return Result("threads", device.title, method, figures, on=device.name)


def _numbers(most: int) -> list[int]:
    numbers = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return [*numbers, most]


def _times(device: Device, threads: int, rounds: int) -> dict[str, Times]:
    iterations = ITERATIONS if device.name == "stub" else DEVICE_ITERATIONS
    program = native.program("threads", device.chip)
    command = [program, device.hip, native.RUNTIME, threads, rounds, iterations]
    return native.run_json(command, device.environment)


def _figures(device: Device, name: str, times: Times, threads: int) -> list[Figure]:
    """Returns the throughput and, for several threads, the scaling and the slowdown."""
    on_stub, hoisted = device.name == "stub", name.startswith("hoisted")
    single = statistics.median(sample for thread in times["single"] for sample in thread)
    per_second = [sum(1e9 / ns for ns in turn) for turn in zip(*times["together"], strict=True)]
    figures = [median(f"{name}, throughput", [n / 1e6 for n in per_second], "million/s")]
    scaled = [rate * single / 1e9 for rate in per_second]
    if threads > 1:
        judged = on_stub and not hoisted and threads == 16 <= len(os.sched_getaffinity(0))
        target = SCALING if judged else None
        figures.append(median(f"{name}, scaling", scaled, "times", at_least=target))
        limit = SLOWDOWN if on_stub and not hoisted and threads == 2 else None
        figures.append(_slowdown(name, times, limit))
    return figures


def _slowdown(name: str, times: Times, target: float | None) -> Figure:
    def percent(single: Sequence[float], together: Sequence[float]) -> list[float]:
        base = statistics.median(single)
        return [100 * (time / base - 1) for time in together]

    slowdowns = [
        median(f"{name}, slowdown", percent(*pair), "%", at_most=target)
        for pair in zip(times["single"], times["together"], strict=True)
    ]
    return max(slowdowns, key=lambda figure: figure.value)
