"""Measures the loop that MLIR emits for the product of a sparse and a dense matrix, on an NVIDIA
GPU."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, Step, median, ratios

METHOD = (
    "Microseconds for one product of a matrix in CSR and a dense one, both of f32: environment, "
    "stream, descriptors and buffer are made and destroyed each time. Stock is the driver's and "
    "cuSPARSE's calls that LLVM's own library makes for that; by hand, all is made once. The best "
    "of five rounds of a process, one of each way in random order; ratios are of the same turn."
)
#: The name of each variant in the program and in the table.
WAYS = {"lowered": "mgpu_rt", "stock": "the calls of LLVM's library", "byhand": "by hand"}
#: Each size contains four numbers: rows, elements in a row, columns of the dense matrix, and
#: products in a round.
SIZES = ((1024, 8, 16, 500), (4096, 16, 64, 200), (16384, 32, 128, 50))
MOST_OF_BY_HAND = 1.1


def run(device: Device, turns: int, step: Step) -> Result:
    """Runs ``turns`` processes for each matrix size and each way to multiply."""
    native.need(native.RUNTIME)
    figures: list[Figure] = []
    data: list[dict[str, Any]] = []
    for size in SIZES:
        rows, in_row, columns, _ = size
        title = f"{rows} rows of {in_row}, times {columns} columns"
        step(title)
        taken = _measure(device, size, turns)
        figures += _figures(title, taken)
        data += [
            {"rows": rows, "in_row": in_row, "columns": columns, "side": way, "us": each.value}
            for way in WAYS
            for each in (median("", taken[way], "µs"),)
        ]
    return Result("sparse", device.title, METHOD, figures, on=device.name, data=data)


def _measure(device: Device, size: Sequence[int], turns: int) -> dict[str, list[float]]:
    program = native.program("sparse", device.chip)
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    order, checksums = random.Random(str(size)), set()
    for _ in range(turns):
        for way in order.sample(list(WAYS), len(WAYS)):
            command = [program, way, native.RUNTIME, *size]
            environment = native.plain_environment() | dict(device.environment)
            got = native.run_json(command, environment | {"MGPU_RT_MANAGER": "off"})
            taken[way].append(got["ns"] / 1e3)
            checksums.add(got["checksum"])
    if len(checksums) > 1:
        raise native.Failed(f"the ways have computed different products: {sorted(checksums)}")
    return taken


def _figures(title: str, taken: dict[str, list[float]]) -> list[Figure]:
    ours = taken["lowered"]
    return [
        *(median(f"{title}, {words}", taken[way], "µs") for way, words in WAYS.items()),
        median(f"{title}, mgpu_rt / LLVM's calls", ratios(ours, taken["stock"]), "times"),
        median(
            f"{title}, mgpu_rt / by hand",
            ratios(ours, taken["byhand"]),
            "times",
            at_most=MOST_OF_BY_HAND,
        ),
    ]
