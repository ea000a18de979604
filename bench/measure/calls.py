"""Measures the cost of the mgpu* calls for one launch: beyond HIP's own calls, and in several
threads."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Request
from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, differences, median

#: For each loop: the number of calls for a launch, and the LLVM releases that emit these calls.
LOOPS = {7: "LLVM 13 to 20", 5: "LLVM 21 to 24", 2: "hoisted"}
ITERATIONS = 2000  # 0.01 to 0.2 ms: short enough to fit between two interruptions
DEVICE_ITERATIONS = 100

# ---- beyond HIP's own calls ----------------------------------------------------------------------

METHOD = (
    "Nanoseconds an iteration beyond the hand-hoisted loop (launch and synchronise on a kept "
    "stream), median over rounds of short runs of each side in turn, on one processor. The "
    "plain runtime and the cache switched off look cheap here because the stub's loads and "
    "creations cost nothing."
)
TARGETS = {7: 60, 5: 40}  # ns, of this library with MGPU_RT_EXCLUSIVE=on
#: Other runtimes: this library in three configurations (default, with statistics, without
#: caches), and the plain runtime.
OTHERS = {
    "mgpu_rt": "mgpu_rt",
    "stats": "mgpu_rt, MGPU_RT_STATS on",
    "off": "MGPU_RT_CACHE=off",
    "stock": "plain runtime",
}


def run(asked: Request) -> Result:
    """Measures all runtimes. HIP is a stub whose functions return at once, so that only the
    runtime's own time counts."""
    native.need(native.RUNTIME, native.STUB)
    asked.step("the forum's loop against a stub of HIP")
    times = _times(20 * asked.repetitions)
    base = times["hoisted/2"]
    figures = [median("hand-hoisted: launch and synchronise", base, "ns")]
    for side, words in {"exclusive": "mgpu_rt exclusive", **OTHERS}.items():
        for calls, target in TARGETS.items():
            if f"{side}/{calls}" in times:
                name = f"{words}, {LOOPS[calls]} ({calls} calls), beyond hoisted"
                beyond = differences(times[f"{side}/{calls}"], base)
                most = target if side == "exclusive" else None
                figures.append(median(name, beyond, "ns", at_most=most))
    return Result("calls", asked.device.title, METHOD, figures)


def _times(rounds: int) -> dict[str, list[float]]:
    sides = [
        f"exclusive,{_copy('exclusive')},MGPU_RT_EXCLUSIVE=on",
        f"mgpu_rt,{native.RUNTIME}",
        f"stats,{_copy('stats')},MGPU_RT_STATS={os.devnull}",
        f"off,{_copy('off')},MGPU_RT_CACHE=off",
    ]
    if native.STOCK.exists():
        sides.append(f"stock,{native.STOCK}")
    return _timed(rounds, _quietest(), sides)


def _timed(rounds: int, processor: int, sides: Sequence[str] = ()) -> dict[str, list[float]]:
    command = [native.program("calls"), "time", native.STUB, rounds, ITERATIONS, processor]
    return native.run_json([*command, *sides], native.stub_environment())


def _copy(name: str) -> Path:
    """Copies the library for a further side of the comparison, because the loader opens a file only
    once in a process."""
    copy = native.OUT / f"libmlir_rocm_runtime-{name}.so"
    shutil.copyfile(native.RUNTIME, copy)
    return copy


def _quietest() -> int:
    """Returns the processor on which a short run of the hoisted loop takes the least time on
    average."""
    processors = sorted(os.sched_getaffinity(0))
    return min(processors, key=lambda one: statistics.fmean(_timed(50, one)["hoisted/2"]))


# ---- threads -------------------------------------------------------------------------------------

IN_THREADS = (
    "Each thread is pinned to a processor and runs the forum's loop by itself and together with "
    "the others, in turn. Throughput is the sum over the threads; scaling is that over the "
    "throughput of one thread; the slowdown is the worst thread's, from its medians, in percent. "
    "The hoisted loop shares nothing at all on the stub, so its slowdown is the machine's."
)
SLOWDOWN = 15.0  # percent, of two threads
SCALING = 13.0  # of 16 threads, if there are 16 processors

#: For each way ("single" or "together"), a list of each thread with the ns of each round.
Times = dict[str, list[list[float]]]


def run_threads(asked: Request) -> Result:
    """Measures 1, 2, 4 ... threads, up to the number that was asked for."""
    native.need(native.RUNTIME)
    device, most = asked.device, asked.threads
    processors = len(os.sched_getaffinity(0))
    method = IN_THREADS
    if most > processors:
        method += f" Here up to {most} threads share {processors} processors."
    iterations = ITERATIONS if device.name == "stub" else DEVICE_ITERATIONS
    command = [native.program("calls", device.chip), "threads", device.hip]
    figures: list[Figure] = []
    for threads in _numbers(most):
        asked.step(f"{threads} threads in their own loops")
        words = [asked.repetitions, iterations, threads, f"mgpu_rt,{native.RUNTIME}"]
        times = native.run_json([*command, *words], device.environment)
        for calls, release in LOOPS.items():
            name = f"{release}, {threads} threads"
            figures += _of_threads(device, name, times[str(calls)], threads)
    return Result("threads", device.title, method, figures, on=device.name)


def _numbers(most: int) -> list[int]:
    numbers = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return [*numbers, most]


def _of_threads(device: Device, name: str, times: Times, threads: int) -> list[Figure]:
    """Returns the throughput and, for several threads, the scaling and the slowdown."""
    judged = device.name == "stub" and not name.startswith("hoisted")
    single = statistics.median(sample for thread in times["single"] for sample in thread)
    per_second = [sum(1e9 / ns for ns in turn) for turn in zip(*times["together"], strict=True)]
    figures = [median(f"{name}, throughput", [n / 1e6 for n in per_second], "million/s")]
    if threads > 1:
        scaled = [rate * single / 1e9 for rate in per_second]
        enough = threads == 16 <= len(os.sched_getaffinity(0))
        target = SCALING if judged and enough else None
        figures.append(median(f"{name}, scaling", scaled, "times", at_least=target))
        limit = SLOWDOWN if judged and threads == 2 else None
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
