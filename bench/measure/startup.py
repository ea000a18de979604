"""The library's one-time costs for a process: the loading, the first launch, and memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.setup import native
from bench.setup.device import Device
from bench.show.figures import Figure, Result, Step, differences, median
from mgpu_rt._record import Recording
from mgpu_rt._record_json import statistics as recorded

METHOD = (
    "Fresh processes. Loading: pairs of runs of a program that does nothing, with and without the "
    "library preloaded; the time of dlopen. First launch: everything from opening the runtime to "
    "the end of the first synchronise; beyond HIP's own: beyond the same steps by hand (stub), or "
    "beyond the time that the runtime spent inside HIP's functions (a driver's own time varies by "
    "more than the whole of ours). With Python: the manager starts a second later, and a first "
    "launch pays for the thread that will start it."
)
TARGET_LOAD = 0.3  # ms
MS = 1e6  # ns


@dataclass(frozen=True)
class Way:
    """A configuration in which a process makes its first launch."""

    title: str
    kind: str  # of bench/native/startup.c
    variables: Mapping[str, str]
    target: float | None = None  # ms beyond HIP's own time


BY_HAND = Way("HIP by hand", "hip", {})
WAYS = (
    Way("with Python", "runtime", {"MGPU_RT_MANAGER": "delay=1000"}, 15.0),
    Way("MGPU_RT_MANAGER=off", "runtime", {"MGPU_RT_MANAGER": "off"}, 1.0),
)


def run(device: Device, repetitions: int, step: Step) -> Result:
    """Runs ``repetitions`` fresh processes of each kind."""
    native.need(native.RUNTIME)
    figures = _loading(device, repetitions, step) if device.name == "stub" else []
    taken: dict[str, list[dict[str, Any]]] = {way.title: [] for way in (BY_HAND, *WAYS)}
    for number in range(repetitions):
        step(f"first launch, {number + 1} of {repetitions}")
        for way in (BY_HAND, *WAYS):
            taken[way.title].append(_first(device, way))
    figures += [f for way in (BY_HAND, *WAYS) for f in _whole(way, taken[way.title])]
    figures += [_beyond(device, way, taken) for way in WAYS]
    return Result("startup", device.title, METHOD, figures, on=device.name)


def _loading(device: Device, repetitions: int, step: Step) -> list[Figure]:
    step("loading the library into a program that never calls it")
    program = native.program("startup")
    env = device.environment
    lives = native.run_json([program, "spawn", 10 * repetitions, "/bin/true", native.RUNTIME], env)
    opens = [
        native.run_json([program, "open", native.RUNTIME, 0], env)["steps"]["open"]
        for _ in range(repetitions)
    ]
    preloaded = differences(lives["with"], lives["without"])
    return [
        median(
            "life of a program that never calls it, beyond without",
            [ns / MS for ns in preloaded],
            "ms",
            at_most=TARGET_LOAD,
        ),
        median("dlopen", [ns / MS for ns in opens], "ms", at_most=TARGET_LOAD),
    ]


def _first(device: Device, way: Way) -> dict[str, Any]:
    """Measures a first launch: the ms of the launch, the ms since the process's start, the ms
    outside HIP, and the MiB of resident memory."""
    library = device.hip if way is BY_HAND else native.RUNTIME
    environment = {**device.environment, **way.variables}
    command = [native.program("startup", device.chip), way.kind, library]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "statistics")
        # On the stub, statistics would take most of the measured time.
        if device.name != "stub":
            environment["MGPU_RT_STATS"] = str(path)
        said = native.run_json([*command, time.monotonic_ns()], environment)
        statistics = recorded(Recording(path.read_bytes())) if path.exists() else None
    return {
        "launch": sum(said["steps"].values()) / MS,
        "since start": said["since_start"] / MS,
        "memory": said["resident_kib"] / 1024,
        "own": _own_time(statistics) / MS if statistics else None,
    }


def _own_time(statistics: dict[str, Any]) -> int:
    """Returns the nanoseconds of the program's calls outside HIP.

    HIP's start precedes the first timed call.
    """
    # HIP destroys objects at exit, outside the program's calls, so the time of HIP's destroying
    # functions is not subtracted.
    after = {"hipStreamDestroy", "hipModuleUnload", "hipEventDestroy", "hipFree"}
    inside = sum(v["ns"] for name, v in statistics["hip"].items() if name not in after)
    return sum(v["ns"] for v in statistics["abi"].values()) - inside


def _whole(way: Way, taken: list[dict[str, Any]]) -> list[Figure]:
    def figure(words: str, key: str, unit: str) -> Figure:
        return median(f"{words}, {way.title}", [one[key] for one in taken], unit)

    return [
        figure("first launch", "launch", "ms"),
        figure("process start to end of first launch", "since start", "ms"),
        figure("resident memory after it", "memory", "MiB"),
    ]


def _beyond(device: Device, way: Way, taken: Mapping[str, list[dict[str, Any]]]) -> Figure:
    if device.name == "stub":
        by_hand = [one["launch"] for one in taken[BY_HAND.title]]
        samples = differences([one["launch"] for one in taken[way.title]], by_hand)
    else:
        samples = [one["own"] for one in taken[way.title]]
    name = f"first launch, {way.title}, beyond HIP's own"
    return median(name, samples, "ms", at_most=way.target)
