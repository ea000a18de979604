"""Measures the table of the forum's report: a program's calls, the driver's calls, and the time of
each call."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import OURS, STOCK, TITLES, Side, all_sides
from bench.show.figures import Figure, Result, Step
from mgpu_rt._record import Recording
from mgpu_rt._record_json import statistics

METHOD = (
    "One process a side with MGPU_RT_STATS, which counts and times every call of the program and "
    "every call of the driver, in the steady state: after a first call of the program's main, in "
    "which everything is loaded and created. Timing itself costs about 50 ns a call."
)
COUNTED = {"forum": 1000, "churn": 200}  # iterations
RELEASES = (19, 22)
START = "HIP's start"  # in no call's time
ONCE = ("hipModuleLoadData", "hipModuleGetFunction", "hipStreamCreate", "hipStreamDestroy")
EACH = ("hipModuleLaunchKernel", "hipStreamSynchronize")


def run(device: Device, step: Step) -> Result:
    """Counts the calls of two programs, forum and churn."""
    native.need(native.RUNTIME)
    sides = [side for side in all_sides(device, None) if side.name in (STOCK, OURS)]
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for program, iterations in COUNTED.items():
        for llvm in RELEASES:
            for side in sides:
                step(f"{program}, LLVM {llvm}, {side.title}")
                calls = max(iterations // device.iterations[program], 1)
                first, all_of_it = _statistics(device, side, program, llvm, calls)
                label = {"program": program, "llvm": llvm, "side": side.name}
                data += _rows(first, all_of_it, calls * device.iterations[program], label)
                made = (1 + calls) * device.iterations[program]
                figures += _figures(all_of_it["hip"], program, llvm, side, made)
    return Result("breakdown", device.title, METHOD, figures, on=device.name, data=data)


def _statistics(
    device: Device, side: Side, program: str, llvm: int, calls: int
) -> list[dict[str, Any]]:
    """Returns two statistics of one process: after the first call of main, which loads and creates
    all objects, and after ``calls`` further calls."""
    command = side.command(program, llvm, device)
    assert command is not None
    environment = {**side.environment, "MGPU_RT_STATS": os.devnull}
    with tempfile.TemporaryDirectory() as folder:
        first, other = Path(folder, "first"), Path(folder, "other")
        native.run([*command, "record", first, 1, other, calls], environment)
        return [statistics(Recording(path.read_bytes())) for path in (first, other)]


def _rows(
    first: dict[str, Any], all_of_it: dict[str, Any], iterations: int, label: dict[str, Any]
) -> list[dict[str, Any]]:
    """Returns a row for each function: the calls and the time in the steady state, and the extra
    cost of the first call."""
    rows = [
        {
            **label,
            "layer": "start",
            "function": START,
            "calls": 0,
            "us": 0.0,
            "iterations": iterations,
            "once_ms": first["start"]["ns"] / 1e6,  # unrounded: a stub starts in nanoseconds
        }
    ]
    for key, layer in (("abi", "program"), ("hip", "driver")):
        for function, counter in all_of_it[key].items():
            before = first[key].get(function, {"calls": 0, "ns": 0})
            calls, ns = counter["calls"] - before["calls"], counter["ns"] - before["ns"]
            each = ns / calls if calls else 0
            if counter["calls"]:
                rows.append(
                    {
                        **label,
                        "layer": layer,
                        "function": function,
                        "calls": calls,
                        "us": round(each / 1e3, 3),
                        "iterations": iterations,
                        "once_ms": round(max(before["ns"] - each * before["calls"], 0) / 1e6, 3),
                    }
                )
    return rows


def _figures(
    hip: dict[str, dict[str, int]], program: str, llvm: int, side: Side, iterations: int
) -> list[Figure]:
    calls = {name: counter["calls"] for name, counter in hip.items()}
    prefix = f"{program}, LLVM {llvm}, {TITLES[side.name]}"
    figures = [
        Figure(f"{prefix}, driver calls of {iterations} iterations", sum(calls.values()), "")
    ]
    if side.name != OURS or program != "forum":
        return figures
    return [
        *figures,
        *(Figure(f"{prefix}, {name}", calls.get(name, 0), "", at_most=1) for name in ONCE),
        *(Figure(f"{prefix}, {name}", calls.get(name, 0), "", exactly=iterations) for name in EACH),
    ]
