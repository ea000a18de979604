"""How fast the emulator of GPU code is, under AMD's HIP."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import lower, native
from bench.device import Device
from bench.figures import Figure, Result, Step, median
from mgpu_rt import softgpu

METHOD = (
    "Launch and synchronise on one stream, the first launch not counted. Processes with one thread "
    "for the device and with two run in turn; figures of one core are of the former. What decoding "
    "costs is a kernel's first launch less its fastest later one, each time from a module loaded "
    "anew. An instruction counts once for each of the 64 lanes of its wave."
)

KERNELS = native.ROOT / "bench" / "kernels" / "emulator.mlir"
LANES = 64
STRAIGHT = 1000  # instructions, at least, of the kernel that is decoded
ROUNDS = 12  # launches of the long kernels in a process


def run(device: Device, repetitions: int, step: Step) -> Result:
    """Measures ``repetitions`` processes with one thread and as many with two, in turn."""
    thread_counts = (1, 2) if len(os.sched_getaffinity(0)) > 1 else (1,)
    taken: dict[int, list[Any]] = {threads: [] for threads in thread_counts}
    for number in range(repetitions):
        for threads in thread_counts:
            step(f"{threads} thread(s), {number + 1} of {repetitions}")
            taken[threads].append(_process(threads, device))
    return Result("emulator", device.words, METHOD, _figures(taken), on=device.name)


def _process(threads: int, device: Device) -> Any:
    variables = {**device.environment, "MGPU_RT_SOFTGPU_THREADS": str(threads)}
    command = [native.program("emulator"), device.hip, _image(KERNELS), _image(_straight())]
    return native.run_json([*command, softgpu.driver(), ROUNDS], variables)


def _image(program: Path) -> Path:
    path = native.OUT / f"{program.stem}.image"
    path.write_bytes(lower.code_object(program))
    return path


def _straight() -> Path:
    """A kernel of many instructions without a loop, each of which needs the one before."""
    operations = "\n".join(
        f"%v{n + 1} = arith.{('addi', 'xori', 'muli')[n % 3]} %v{n}, %x : i32"
        for n in range(STRAIGHT)
    )
    path = native.OUT / "straight.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"""module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
gpu.func @straight(%m: memref<?xi32>) kernel {{
%i = gpu.thread_id x
%x = memref.load %m[%i] : memref<?xi32>
%v0 = arith.index_cast %i : index to i32
{operations}
memref.store %v{STRAIGHT}, %m[%i] : memref<?xi32>
gpu.return
}} }} }}
""")
    return path


def _samples(processes: list[Any], kernel: str) -> list[float]:
    return [ns for process in processes for ns in process[kernel]["ns"]]


def _figures(taken: Mapping[int, list[Any]]) -> list[Figure]:
    one = taken[1]
    ms = {name: [ns / 1e6 for ns in _samples(one, name)] for name in ("vecadd", "matmul")}
    figures = [
        median("vecadd of 65,536 elements, a launch, one core", ms["vecadd"], "ms", at_most=1.6),
        median("f32 tiled matmul 256³, a launch, one core", ms["matmul"], "ms", at_most=1000),
        median(
            f"decoding a kernel of {STRAIGHT} instructions",
            [ns / 1e6 for process in one for ns in process["first"]],
            "ms",
            at_most=5,
        ),
    ]
    for name in ("arithmetic", "matmul", "vecadd"):
        count = one[0][name]["instructions"] * LANES
        rates = [count / ns * 1e3 for ns in _samples(one, name)]
        figures.append(median(f"{name}, one core", rates, "million lane-instructions/s"))
    for name in ("arithmetic", "matmul"):
        if 2 in taken:
            both = statistics.median(_samples(taken[2], name))
            ratio = statistics.median(_samples(one, name)) / both
            figures.append(Figure(f"{name}, two cores against one", round(ratio, 2), "times"))
    return figures
