"""The table of the forum's report: what a program calls, what the driver is asked for, how long."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.setup.sides import OURS, STOCK, WORDS, Side, all_sides
from bench.show.figures import Figure, Result, Step

METHOD = (
    "One process a side with MGPU_RT_STATS, which counts and times every call of the program and "
    "every call of the driver. Timing itself costs about 50 ns a call."
)
COUNTED = {"forum": 1000, "churn": 200}  # iterations
RELEASES = (19, 22)
ONCE = ("hipModuleLoadData", "hipModuleGetFunction", "hipStreamCreate", "hipStreamDestroy")
EACH = ("hipModuleLaunchKernel", "hipStreamSynchronize")


def run(device: Device, step: Step) -> Result:
    """Counts the programs forum and churn."""
    native.need(native.RUNTIME)
    sides = [side for side in all_sides(device, None) if side.name in (STOCK, OURS)]
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for program, iterations in COUNTED.items():
        for llvm in RELEASES:
            for side in sides:
                step(f"{program}, LLVM {llvm}, {side.words}")
                calls = max(iterations // device.iterations[program], 1)
                statistics = _statistics(device, side, program, llvm, calls)
                label = {"program": program, "llvm": llvm, "side": side.name}
                data += _rows(statistics, label)
                made = calls * device.iterations[program]
                figures += _figures(statistics["hip"], program, llvm, side, made)
    return Result("breakdown", device.words, METHOD, figures, on=device.name, data=data)


def _statistics(device: Device, side: Side, program: str, llvm: int, calls: int) -> dict[str, Any]:
    command = side.command(program, llvm, device)
    assert command is not None
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "statistics.json")
        environment = {**side.environment, "MGPU_RT_STATS": str(path)}
        native.run([*command, time.monotonic_ns(), calls], environment)
        return json.loads(path.read_text())


def _rows(statistics: dict[str, Any], label: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **label,
            "layer": layer,
            "function": function,
            "calls": counter["calls"],
            "us": round(counter["ns"] / 1e3 / counter["calls"], 3),
        }
        for key, layer in (("abi", "program"), ("hip", "driver"))
        for function, counter in statistics[key].items()
        if counter["calls"]
    ]


def _figures(
    hip: dict[str, dict[str, int]], program: str, llvm: int, side: Side, iterations: int
) -> list[Figure]:
    calls = {name: counter["calls"] for name, counter in hip.items()}
    prefix = f"{program}, LLVM {llvm}, {WORDS[side.name]}"
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
