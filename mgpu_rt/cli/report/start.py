"""HIP's own start, which is in one call of the driver and paid once in a process."""

from __future__ import annotations

from dataclasses import dataclass

from mgpu_rt.cli.report.runs import Run
from mgpu_rt.cli.report.trace import Trace
from mgpu_rt.cli.stats.files import total

LEAST = 10_000  # microseconds; less is no start
PART = 0.1  # of the time of all calls: less is not worth a word


@dataclass(frozen=True)
class Start:
    """The call that HIP started in."""

    ns: int
    driver: str  # its function
    program: str  # the function of the program's call around it


def find(run: Run) -> Start | None:
    """HIP starts in a function's first call, which is then by far the longest of the driver's."""
    if run.trace is None or run.trace.lost or not run.trace.driver:
        return None
    duration, begin, name = max(
        (first[1], first[0], name)
        for name, calls in run.trace.driver.items()
        for first in (min(zip(calls.begins, calls.durations, strict=True)),)
    )
    program = _around(run.trace, begin, begin + duration)
    if duration < LEAST or program not in run.statistics.program:
        return None
    # The statistics may be of another run of the program than the trace.
    ns = min(round(1000 * duration), run.statistics.program[program].ns)
    if ns < PART * total(run.statistics.program.values()).ns:
        return None
    return Start(ns, name, program)


def _around(trace: Trace, begin: float, end: float) -> str | None:
    for name, calls in trace.program.items():
        for other, duration in zip(calls.begins, calls.durations, strict=True):
            if other <= begin and end <= other + duration:
                return name
    return None
