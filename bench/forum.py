"""The forum's program on AMD's HIP: time and driver calls a launch, without and with the cache."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import lower, native
from bench.figures import Figure, Result, Step, median
from mgpu_rt import softgpu

DEVICE = "AMD's HIP 5.2.3 on an emulated gfx90a"
METHOD = (
    "The lowered program's main is called again and again in one process, some launches a call; "
    "the first call, in which HIP initialises itself, does not count. Each side has processes of "
    "its own, in turn. Driver calls are of a process whose only call makes 1000 launches."
)
TARGET = 0.01  # of the time without the cache
COUNTED = 1000


@dataclass(frozen=True)
class Side:
    """How the program is run; a round takes 10 to 30 ms without the cache, 0.4 ms with it."""

    name: str
    variables: Mapping[str, str]
    launches: int  # a round
    rounds: int  # a process


OFF = Side("MGPU_RT_CACHE=off", {"MGPU_RT_CACHE": "off"}, 10, 15)
ON = Side("mgpu_rt", {}, 200, 200)


def run(repetitions: int, step: Step) -> Result:
    """Runs the programs of LLVM 19 and 22; ``repetitions`` processes on each side in turn."""
    native.need(native.RUNTIME)
    try:
        environment = softgpu.environment(native.plain_environment())
    except softgpu.SoftGpuUnavailable as reason:
        raise native.Failed(str(reason)) from None
    figures: list[Figure] = []
    for llvm in (19, 22):
        figures += _times(llvm, repetitions, environment, step)
        step(f"LLVM {llvm}, driver calls")
        figures += _driver_calls(llvm, environment)
    return Result("forum", DEVICE, METHOD, figures)


def _sides(env: Mapping[str, str]) -> list[Side]:
    if not native.STOCK.exists():
        return [OFF, ON]
    paths = f"{native.STOCK.parent}:{env['LD_LIBRARY_PATH']}"
    plain = Side("plain runtime", {"LD_LIBRARY_PATH": paths}, OFF.launches, OFF.rounds)
    return [plain, OFF, ON]


def _times(llvm: int, repetitions: int, env: Mapping[str, str], step: Step) -> list[Figure]:
    """Microseconds a launch."""
    sides = _sides(env)
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(repetitions):
        for side in sides:
            step(f"LLVM {llvm}, {side.name}, {number + 1} of {repetitions}")
            rounds = _rounds(llvm, side.launches, side.rounds, {**env, **side.variables})
            times[side.name] += [ns / 1e3 / side.launches for ns in rounds]
    figures = {
        side.name: median(f"LLVM {llvm}, {side.name}, a launch", times[side.name], "µs")
        for side in sides
    }
    ratio = figures[ON.name].value / figures[OFF.name].value
    name = f"LLVM {llvm}, a launch, with the cache / without"
    return [*figures.values(), Figure(name, ratio, "", at_most=TARGET)]


def _rounds(llvm: int, launches: int, rounds: int, env: Mapping[str, str]) -> list[int]:
    return native.run_json([native.program("rounds"), _program(llvm, launches), rounds], env)


def _program(llvm: int, launches: int) -> Path:
    """The forum's program as a shared object."""
    lowered = lower.lower(native.FORUM, llvm=llvm, iterations=launches)
    path = native.OUT / f"{lowered.stem}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        search = f"-Wl,-rpath,{native.RUNTIME.parent}"
        native.compile_c(["-shared", lowered, native.RUNTIME, search], path)
    return path


def _driver_calls(llvm: int, env: Mapping[str, str]) -> list[Figure]:
    def count(side: Side) -> dict[str, int]:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "statistics.json")
            variables = {**side.variables, "MGPU_RT_STATS": str(path)}
            _rounds(llvm, COUNTED, 0, {**env, **variables})
            hip = json.loads(path.read_text())["hip"]
        return {name: counter["calls"] for name, counter in hip.items()}

    off, on = count(OFF), count(ON)
    whole = [
        Figure(f"LLVM {llvm}, {side.name}, all driver calls", sum(calls.values()), "")
        for side, calls in ((OFF, off), (ON, on))
    ]
    prefix = f"LLVM {llvm}, {ON.name}, "
    once = ("hipModuleLoadData", "hipModuleGetFunction", "hipStreamCreate", "hipStreamDestroy")
    each = ("hipModuleLaunchKernel", "hipStreamSynchronize")
    return [
        *whole,
        *(Figure(prefix + name, on.get(name, 0), "", at_most=1) for name in once),
        *(Figure(prefix + name, on.get(name, 0), "", exactly=COUNTED) for name in each),
    ]
