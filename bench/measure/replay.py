"""Replays allocation traces of real programs in three ways: through this library, with hipMalloc
and hipFree as stock does, and through HIP's pool.

``python -m bench.measure.replay`` recorded the traces in bench/traces. A trace contains the calls
of hipMalloc, hipFree and hipStreamSynchronize that a program of bench/programs makes without the
cache.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.setup import build, native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, Step, differences, median

METHOD = (
    "Microseconds for one replay of a trace, median over rounds of each way in turn in one "
    "process: mgpuMemAlloc and mgpuMemFree, hipMalloc and hipFree, hipMallocAsync and "
    "hipFreeAsync. All synchronise the stream where the trace does; nothing else is on it."
)
TRACES = native.ROOT / "bench" / "traces"
PROGRAMS = ("churn", "layers", "vecadd")
ITERATIONS = 10  # of the recorded programs
WAYS = {"mgpu_rt": "mgpu_rt", "stock": "hipMalloc and hipFree", "async": "hipMallocAsync"}


def run(device: Device, rounds: int, step: Step) -> Result:
    """Replays every trace in ``rounds`` rounds; in each round the three ways take turns."""
    native.need(native.RUNTIME)
    figures = _pairs(device, rounds) if device.name == "stub" else []
    data = []
    for trace in sorted(TRACES.glob("*.trace")):
        step(f"{trace.stem}, {rounds} rounds")
        command = [native.program("replay", device.chip), device.hip, native.RUNTIME]
        repeats = 5 if device.name == "softgpu" else 50
        times = native.run_json([*command, rounds, repeats, trace], dict(device.environment))
        figures += [median(f"{trace.stem}, {WAYS[way]}", times[way], "µs") for way in WAYS]
        data.append({way: statistics.median(times[way]) for way in WAYS} | {"trace": trace.stem})
        ratios = [
            ours / theirs for ours, theirs in zip(times["mgpu_rt"], times["stock"], strict=True)
        ]
        limit = {"at_most": 0.2} if device.real else {}
        figures.append(median(f"{trace.stem}, mgpu_rt against stock", ratios, "times", **limit))
    return Result("replay", device.title, METHOD, figures, on=device.name, data=data)


def _pairs(device: Device, rounds: int) -> list[Figure]:
    """Measures the cost of cached allocations. The slowdown compares lower quartiles, because
    interruptions can only lengthen a round."""
    command = [native.program("pairs", device.chip), native.RUNTIME, rounds]
    times = native.run_json(command, dict(device.environment))
    one, two = (statistics.quantiles(times[name])[0] for name in ("one", "two"))
    beyond = differences(times["one"], times["empty"])
    name = "mgpuMemAlloc and mgpuMemFree, beyond two empty calls"
    slower = Figure(
        "the same on 2 threads and streams, slowdown", 100 * (two / one - 1), "%", at_most=15
    )
    return [median(name, beyond, "ns", at_most=60), slower]


def steps(calls: list[dict[str, Any]]) -> list[str]:
    """Returns the lines of a trace, from the calls that the stub recorded."""
    slots: dict[int, int] = {}
    lines = []
    for call in calls:
        if call["name"] == "hipMalloc":
            slot = next(i for i in range(len(slots) + 1) if i not in slots.values())
            slots[call["out"]] = slot
            lines.append(f"a {slot} {call['args']['bytes']}")
        elif call["name"] == "hipFree":
            lines.append(f"f {slots.pop(call['args']['address'])}")
        elif call["name"] == "hipStreamSynchronize":
            lines.append("s")
    return lines


def record(program: str) -> list[str]:
    """Runs a program on the stub and returns its trace."""
    iterations = None if program == "vecadd" else ITERATIONS
    executable = build.executable(program, 22, "gfx90a", iterations)
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, "log.json")
        env = native.stub_environment(
            HIPSTUB_MODE="record",
            HIPSTUB_LOG=str(log),
            MGPU_RT_CACHE="off",
            BENCH_WAIT=f"{native.STUB},hipDeviceSynchronize",
        )
        native.run([executable, 0, 1], env)
        return steps(json.loads(log.read_text())["calls"])


def main() -> None:
    """Records all traces again."""
    for program in PROGRAMS:
        head = f"# {program}.mlir, LLVM 22: a SLOT BYTES, f SLOT, s: synchronise"
        TRACES.joinpath(f"{program}.trace").write_text("\n".join([head, *record(program)]) + "\n")


if __name__ == "__main__":
    main()
