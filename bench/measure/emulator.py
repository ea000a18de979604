"""Measures the speed of the emulator of GPU code, which AMD's HIP uses as its device."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, Step, median
from mgpu_rt._cli import softgpu
from mgpu_rt._lowering import lower

METHOD = (
    "Launch and synchronise on one stream, the first launch not counted. Processes with one thread "
    "for the device and with two run in turn; figures of one core are of the former. The fastest "
    "launch of all counts, as other programs only ever slow it down; the spread shows by how much. "
    "What decoding costs is the median of a kernel's first launch less its fastest later one, each "
    "time from a module loaded anew. An instruction counts once for each lane of its wave."
)

KERNELS = native.ROOT / "bench" / "kernels" / "emulator.mlir"
LANES = 64
STRAIGHT = 1000  # number of instructions, at least, in the kernel that is decoded
ROUNDS = 12  # launches of the long kernels in a process


def run(device: Device, repetitions: int, step: Step) -> Result:
    """Measures ``repetitions`` processes with one thread and ``repetitions`` with two threads,
    alternately."""
    thread_counts = (1, 2) if len(os.sched_getaffinity(0)) > 1 else (1,)
    taken: dict[int, list[Any]] = {threads: [] for threads in thread_counts}
    for number in range(repetitions):
        for threads in thread_counts:
            step(f"{threads} thread(s), {number + 1} of {repetitions}")
            taken[threads].append(_process(threads, device))
    return Result("emulator", device.title, METHOD, _figures(taken), on=device.name)


def _process(threads: int, device: Device) -> Any:
    targets = device.environment["MGPU_RT_SOFTGPU"]
    variables = {**device.environment, "MGPU_RT_SOFTGPU": f"{targets},threads={threads}"}
    command = [native.program("emulator"), device.hip, _image(KERNELS), _image(_straight())]
    return native.run_json([*command, softgpu.driver(), ROUNDS], variables)


def _image(program: Path) -> Path:
    path = native.OUT / f"{program.stem}.image"
    path.write_bytes(lower.code_object(program))
    return path


def _straight() -> Path:
    """A kernel of many instructions without a loop, in which each instruction needs the result of
    the previous instruction."""
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


def _fastest(name: str, samples: list[float], unit: str, at_most: float | None = None) -> Figure:
    """Returns a figure whose value is the least sample, because other programs can only lengthen a
    launch."""
    return dataclasses.replace(median(name, samples, unit, at_most=at_most), value=min(samples))


def _figures(taken: Mapping[int, list[Any]]) -> list[Figure]:
    one = taken[1]
    ms = {name: [ns / 1e6 for ns in _samples(one, name)] for name in ("vecadd", "matmul")}
    first = [ns / 1e6 for process in one for ns in process["first"]]
    figures = [
        _fastest("vecadd of 65,536 elements, a launch, one core", ms["vecadd"], "ms", 1.6),
        _fastest("f32 tiled matmul 256³, a launch, one core", ms["matmul"], "ms", 1000),
        median(f"decoding a kernel of {STRAIGHT} instructions", first, "ms", at_most=5),
    ]
    for name in ("arithmetic", "matmul", "vecadd"):
        count = one[0][name]["instructions"] * LANES
        samples = _samples(one, name)
        rates = median(name, [count / ns * 1e3 for ns in samples], "million lane-instructions/s")
        best = round(count / min(samples) * 1e3)
        figures.append(dataclasses.replace(rates, name=f"{name}, one core", value=best))
    for name in ("arithmetic", "matmul", "vecadd"):
        if 2 in taken:
            ratio = min(_samples(one, name)) / min(_samples(taken[2], name))
            figures.append(Figure(f"{name}, two cores against one", round(ratio, 2), "times"))
    return figures
