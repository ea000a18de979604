"""The sides of a comparison: one program, run with different runtimes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.setup import build, native
from bench.setup.device import Device

STOCK, LLVM, PLAIN, OURS = "stock", "llvm", "plain", "mgpu_rt"
EXCLUSIVE, LAZY, HOISTED = "exclusive", "lazy", "hoisted"
GRAPH, HAND_GRAPH = "graph", "graph by hand"

#: The sides in the order of the tables.
TITLES = {
    STOCK: "stock's behaviour",
    LLVM: "LLVM's own library",
    PLAIN: "plain runtime",
    OURS: "mgpu_rt",
    EXCLUSIVE: "mgpu_rt exclusive",
    LAZY: "mgpu_rt exclusive, lazy",
    HOISTED: "by hand",
    GRAPH: "mgpu_rt's graph",
    HAND_GRAPH: "graph by hand",
}

#: The library and function that wait for all work of a program that calls NVIDIA's driver directly.
ON_LIBCUDA = "libcuda.so.1,cuCtxSynchronize"


@dataclass(frozen=True)
class Side:
    """One way to run a program. The side by hand is a program of its own, without a runtime."""

    name: str
    environment: Mapping[str, str]

    def command(self, program: str, llvm: int, device: Device) -> list[str]:
        """Returns the command that runs a program in rounds."""
        iterations = device.iterations.get(program)
        if self.name != HOISTED:
            return [str(build.executable(program, llvm, device.chip, iterations))]
        arguments = by_hand_arguments(program, device)
        return [str(native.program("hoisted", device.chip)), *arguments]


def by_hand_arguments(program: str, device: Device) -> list[str]:
    """Returns the arguments for bench/native/hoisted.c, which calls HIP directly."""
    image = native.image(device.chip, program)
    return [*map(str, (device.hip, program, device.iterations.get(program) or 1, image))]


def all_sides(device: Device, llvm_runtime: Path | None) -> list[Side]:
    """Returns the sides of this device, stock first."""
    base = _base(device)
    sides = [Side(STOCK, {**base, "MGPU_RT_CACHE": "off"})]
    if llvm_runtime is not None and device.real:
        sides.append(Side(LLVM, _llvm_environment(device, base, llvm_runtime)))
    if not device.real and native.STOCK.exists():
        sides.append(Side(PLAIN, _preload(base, native.STOCK, device.hip.parent)))
    exclusive = {**base, "MGPU_RT_EXCLUSIVE": "on"}  # no other code calls HIP, by the user's word
    lazy = {**exclusive, "MGPU_RT_SYNC": "lazy"}
    sides += [Side(OURS, base), Side(EXCLUSIVE, exclusive), Side(LAZY, lazy)]
    return [*sides, Side(HOISTED, base)]


def by_hand_runtime(device: Device) -> Side:
    """Returns the side that runs the unchanged programs of bench/models with the runtime
    bench/stock/byhand.c. The runtime byhand.c supports only the programs of bench/models."""
    native.need(native.BY_HAND)
    return Side(HOISTED, _preload(_base(device), native.BY_HAND, device.hip.parent))


def graph_sides(device: Device) -> list[Side]:
    """Returns the sides that run a program as one graph. This library builds the graph, or a
    runtime written by hand."""
    sides = [Side(GRAPH, _base(device)), by_hand_runtime(device)]
    names = {HOISTED: HAND_GRAPH}
    return [
        Side(names.get(side.name, side.name), {**side.environment, "BENCH_GRAPH": "on"})
        for side in sides
    ]


def _base(device: Device) -> dict[str, str]:
    base = {**device.environment, "BENCH_WAIT": f"{device.hip},hipDeviceSynchronize"}
    if device.real:
        base["BENCH_CPU"] = str(max(os.sched_getaffinity(0)))
    return base


def _llvm_environment(device: Device, base: Mapping[str, str], library: Path) -> Mapping[str, str]:
    environment = _preload(base, library, device.hip.parent)
    if device.name == "cuda":  # the program calls the driver itself, in its own context
        environment["BENCH_WAIT"] = ON_LIBCUDA
    return environment


def _preload(base: Mapping[str, str], library: Path, hip: Path) -> dict[str, str]:
    search = [*filter(None, [base.get("LD_LIBRARY_PATH")]), str(hip)]
    return {**base, "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": os.pathsep.join(search)}
