"""What the library costs a process once: to be loaded, and at its first launch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench import native
from bench.figures import Figure, Result, Step, differences, median
from mgpu_rt import softgpu

DEVICE = "a stub of HIP; and AMD's HIP 5.2.3 on an emulated gfx90a"
METHOD = (
    "Loading: pairs of runs of a program that does nothing, with and without the library "
    "preloaded; the time of dlopen in fresh processes. First launch: everything from opening the "
    "runtime to the end of the first synchronise, beyond the same steps on HIP by hand (stub), or "
    "beyond the time that the runtime itself spent inside HIP's functions (AMD's HIP, whose own "
    "time varies by more than the whole of ours)."
)
TARGET_LOAD = 0.3  # ms
TARGETS = (("with Python", {}, 15.0), ("MGPU_RT_PYTHON=off", {"MGPU_RT_PYTHON": "off"}, 1.0))

MS = 1e6  # ns


def run(repetitions: int, step: Step) -> Result:
    """``repetitions`` fresh processes of each kind; a third as many on AMD's HIP."""
    native.need(native.RUNTIME, native.STUB)
    figures = [*_loading(repetitions, step), *_first_on_stub(repetitions, step)]
    try:
        environment = softgpu.environment(native.plain_environment())
    except softgpu.SoftGpuUnavailable as reason:
        step(f"left out on AMD's HIP: {reason}")
        return Result("startup", "a stub of HIP", METHOD, figures)
    figures += _first_on_amd(max(repetitions // 3, 3), environment, step)
    return Result("startup", DEVICE, METHOD, figures)


def _loading(repetitions: int, step: Step) -> list[Figure]:
    step("loading the library into a program that never calls it")
    program = native.program("startup")
    env = native.stub_environment()
    lives = native.run_json([program, "spawn", 10 * repetitions, "/bin/true", native.RUNTIME], env)
    opens = [
        native.run_json([program, "open", native.RUNTIME], env)["open"] for _ in range(repetitions)
    ]
    preloaded = differences(lives["with"], lives["without"])
    return [
        median(
            "life of a program that never calls it, beyond without",
            [time / MS for time in preloaded],
            "ms",
            at_most=TARGET_LOAD,
        ),
        median("dlopen", [time / MS for time in opens], "ms", at_most=TARGET_LOAD),
    ]


def _launch(kind: str, library: Path | str, env: Mapping[str, str]) -> float:
    """ms from opening the library to the end of the first synchronise."""
    steps = native.run_json([native.program("startup"), kind, library], env)
    return sum(steps.values()) / MS


def _first_on_stub(repetitions: int, step: Step) -> list[Figure]:
    step("first launch on the stub")
    by_hand: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name, _, _ in TARGETS}
    for _ in range(repetitions):
        by_hand.append(_launch("hip", native.STUB, native.stub_environment()))
        for name, variables, _ in TARGETS:
            env = native.stub_environment(**variables)
            ours[name].append(_launch("runtime", native.RUNTIME, env))
    return [
        median(
            f"first launch, stub, {name}, beyond HIP's own",
            differences(ours[name], by_hand),
            "ms",
            at_most=target,
        )
        for name, _, target in TARGETS
    ]


def _own_time(env: Mapping[str, str]) -> tuple[float, float]:
    """ms of the first launch, and of those outside HIP's functions, by the statistics."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "statistics.json")
        whole = _launch("runtime", native.RUNTIME, {**env, "MGPU_RT_STATS": str(path)})
        statistics = json.loads(path.read_text())
    # What is destroyed at exit is HIP's time too, but none of the program's calls.
    during = {"hipStreamDestroy", "hipModuleUnload", "hipEventDestroy"}
    inside = sum(v["ns"] for name, v in statistics["hip"].items() if name not in during)
    return whole, (sum(v["ns"] for v in statistics["abi"].values()) - inside) / MS


def _first_on_amd(repetitions: int, env: Mapping[str, str], step: Step) -> list[Figure]:
    figures = []
    by_hand: list[float] = []
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in TARGETS}
    for number in range(repetitions):
        step(f"first launch on AMD's HIP, {number + 1} of {repetitions}")
        by_hand.append(_launch("hip", env["MGPU_RT_HIP"], env))
        for name, variables, _ in TARGETS:
            taken[name].append(_own_time({**env, **variables}))
    figures.append(median("first launch, AMD's HIP by hand, whole", by_hand, "ms"))
    for name, _, target in TARGETS:
        whole, own = zip(*taken[name], strict=True)
        figures.append(median(f"first launch, AMD's HIP, {name}, whole", whole, "ms"))
        figures.append(
            median(f"first launch, AMD's HIP, {name}, outside HIP", own, "ms", at_most=target)
        )
    return figures
