"""Measures the cost of the mgpu* calls for one launch, minus the cost of HIP's launch and
synchronise.

HIP is a stub whose functions return at once, so that only the runtime's own time counts.
"""

from __future__ import annotations

import os
import shutil
import statistics
from pathlib import Path

from bench.measure import Request
from bench.setup import native
from bench.show.figures import Figure, Result, differences, median

DEVICE = "no device: a stub of HIP whose functions return at once"
METHOD = (
    "Nanoseconds an iteration beyond the hand-hoisted loop (launch and synchronise on a kept "
    "stream), median over rounds of short runs of each side in turn, on one processor. The "
    "plain runtime and the cache switched off look cheap here because the stub's loads and "
    "creations cost nothing."
)

#: For each loop: the number of calls for a launch, the LLVM releases that emit these calls, and the
#: target in ns.
LOOPS = ((7, "LLVM 13 to 20 (7 calls)", 60), (5, "LLVM 21 to 24 (5 calls)", 40))
#: Other runtimes: this library in three configurations (default, with statistics, without
#: caches), and the plain runtime.
OTHERS = (
    ("mgpu_rt", "mgpu_rt"),
    ("stats", "mgpu_rt, MGPU_RT_STATS on"),
    ("off", "MGPU_RT_CACHE=off"),
    ("stock", "plain runtime"),
)
REPORT = 15  # ns: the most time that HIP's report of a call may take (driver/witness.h)
ITERATIONS = 2000  # 0.01 to 0.2 ms: short enough to fit between two interruptions


def run(asked: Request) -> Result:
    """Measures all runtimes."""
    native.need(native.RUNTIME, native.STUB)
    asked.step("the forum's loop against a stub of HIP")
    times = _times(20 * asked.repetitions)
    base = times["hoisted/2"]
    figures = [median("hand-hoisted: launch and synchronise", base, "ns")]
    for calls, words, target in LOOPS:
        beyond = differences(times[f"exclusive/{calls}"], base)
        name = f"mgpu_rt exclusive, {words}, beyond hoisted"
        figures.append(median(name, beyond, "ns", at_most=target))
    for calls, words, _ in LOOPS:
        beyond = differences(times[f"exclusive/{calls}/cold"], times["hoisted/2/cold"])
        name = f"mgpu_rt exclusive, {words}, beyond hoisted, 64 KB written between launches"
        figures.append(median(name, beyond, "ns"))
    for side, words in OTHERS:
        for calls, release, _ in LOOPS:
            if f"{side}/{calls}" in times:
                beyond = differences(times[f"{side}/{calls}"], base)
                figures.append(median(f"{words}, {release}, beyond hoisted", beyond, "ns"))
    figures.append(_report(20 * asked.repetitions))
    return Result("calls", DEVICE, METHOD, figures)


def _times(rounds: int) -> dict[str, list[float]]:
    program = native.program("calls")
    sides = [
        f"exclusive,{_copy('exclusive')},MGPU_RT_EXCLUSIVE=on",
        f"mgpu_rt,{native.RUNTIME}",
        f"stats,{_copy('stats')},MGPU_RT_STATS={os.devnull}",
        f"off,{_copy('off')},MGPU_RT_CACHE=off",
    ]
    if native.STOCK.exists():
        sides.append(f"stock,{native.STOCK}")
    processor = _quietest()
    return native.run_json(
        [program, "time", native.STUB, rounds, ITERATIONS, processor, *sides],
        native.stub_environment(),
    )


def _report(rounds: int) -> Figure:
    """Measures a call of HIP by other code that ends the library's sole use of HIP."""
    command = [native.program("calls"), "reports", native.STUB, rounds, ITERATIONS]
    environment = native.stub_environment(HIPSTUB_TELLS="1")
    times = native.run_json([*command, f"mgpu_rt,{native.RUNTIME}"], environment)
    beyond = differences(times["reported"], times["unreported"])
    return median("HIP's report of a call by other code", beyond, "ns", at_most=REPORT)


def _copy(name: str) -> Path:
    """Copies the library for a further side of the comparison, because the loader opens a file only
    once in a process."""
    copy = native.OUT / f"libmlir_rocm_runtime-{name}.so"
    shutil.copyfile(native.RUNTIME, copy)
    return copy


def _quietest() -> int:
    """Returns the processor on which a short run of the hoisted loop takes the least time on
    average."""
    program = native.program("calls")

    def disturbance(processor: int) -> float:
        times = native.run_json(
            [program, "time", native.STUB, 50, ITERATIONS, processor], native.stub_environment()
        )
        return statistics.fmean(times["hoisted/2"])

    return min(sorted(os.sched_getaffinity(0)), key=disturbance)
