"""Measures the cost of a launch of the forum's program with runtimes in Python. The runtimes range
from a hook on launches to a runtime that handles all calls."""

from __future__ import annotations

import os
import sys

from bench.measure import Request, programs
from bench.measure.rounds import METHOD as ROUNDS
from bench.setup import native
from bench.setup.sides import HOISTED, OURS, STOCK, Side, all_sides
from bench.show.figures import Result, differences, median, ratios

METHOD = (
    f"Microseconds a launch of the forum's program: {ROUNDS} Native is the library without a "
    "runtime in Python. What is beyond is the difference of the same round."
)

#: For each title, the runtime's class and a target in µs. On the stub, a launch with the runtime
#: may take at most this much longer than with the C library.
RUNTIMES = {
    "an empty LaunchHook": ("bench.runtimes:Observe", 3.0),
    "all calls through Python": ("bench.runtimes:All", 8.0),
    "PlainRuntime": ("mgpu_rt.runtime:PlainRuntime", None),
    "CachedRuntime": ("mgpu_rt.runtime:CachedRuntime", None),
    "Singleton": ("mgpu_rt.runtime:Singleton", None),
}
NATIVE, OFF, BY_HAND = "native", "MGPU_RT_CACHE=off", "by hand"
FORUM = programs.Program("forum", 1)


def run(asked: Request) -> Result:
    """Measures rounds of each side in turn."""
    native.need(native.RUNTIME)
    device = asked.device
    plain = {side.name: side for side in all_sides(device, None)}
    found = os.pathsep.join([str(native.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    python = {"MGPU_RT_MANAGER": sys.executable, "PYTHONPATH": found}
    base = {**plain[OURS].environment, **python}
    sides = [
        plain[STOCK],
        plain[OURS],
        plain[HOISTED],
        *(Side(name, {**base, "MGPU_RT_RUNTIME": kind}) for name, (kind, _) in RUNTIMES.items()),
    ]
    figures = []
    for llvm, calls in ((19, 7), (22, 5)):
        samples = programs.measure(FORUM, llvm, asked, sides)
        ours, hand = samples[OURS], samples[HOISTED]
        title = f"{calls} calls"
        for name, words in ((OURS, NATIVE), (STOCK, OFF), (HOISTED, BY_HAND)):
            figures.append(median(f"{title}, {words}", samples[name], "µs"))
        for name, (_, most) in RUNTIMES.items():
            figures.append(median(f"{title}, {name}", samples[name], "µs"))
            beyond = differences(samples[name], ours)
            target = most if device.name == "stub" and calls == 7 else None
            figures.append(median(f"{title}, {name}, beyond native", beyond, "µs", at_most=target))
        figures.append(
            median(
                f"{title}, Singleton / {BY_HAND}",
                ratios(samples["Singleton"], hand),
                "",
                at_most=2.0 if device.real and calls == 7 else None,
            )
        )
    return Result("in_python", device.title, METHOD, figures, on=device.name)
