"""Measures munmap of memory whose registration the library keeps, relative to munmap of memory that
HIP has unregistered."""

from __future__ import annotations

from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Result, Step, differences, median, ratios

METHOD = (
    "Microseconds of munmap for memory that was registered and unregistered. Kept: with "
    "MGPU_RT_EXCLUSIVE=on, where the call waits until the library has read the kernel's event. "
    "Not kept: without. The runs alternate, ten calls of each size a run."
)
CALLS = 10  # number of calls for each size
MOST = 60.0  # µs beyond


def run(device: Device, repetitions: int, step: Step) -> Result:
    """Makes ``repetitions`` runs of both kinds in turn."""
    native.need(native.RUNTIME)
    command = [native.program("unmap", device.chip), native.RUNTIME, CALLS]
    times: dict[str, dict[str, list[float]]] = {"off": {}, "on": {}}
    for number in range(repetitions):
        step(f"munmap, {number + 1} of {repetitions}")
        for word, sizes in times.items():
            env = {**device.environment, "MGPU_RT_MANAGER": "off", "MGPU_RT_EXCLUSIVE": word}
            for size, taken in native.run_json(command, env).items():
                sizes.setdefault(size, []).extend(ns / 1e3 for ns in taken)
    figures = []
    for size, kept in times["on"].items():
        title, plain = f"munmap of {int(size) >> 10} KB", times["off"][size]
        figures += [
            median(f"{title}, not kept", plain, "µs"),
            median(f"{title}, kept", kept, "µs"),
            median(f"{title}, kept / not kept", ratios(kept, plain), ""),
            median(f"{title}, kept, beyond not kept", differences(kept, plain), "µs", at_most=MOST),
        ]
    return Result("unmap", device.title, METHOD, figures, on=device.name)
