"""Measures models with real operations, in variants of memory management and synchronisation.

Every round's output is compared with NumPy's, outside the timed part.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import turns
from bench.models.program import CHAIN, REGISTERED, SHARED, WAITS, Variant, variants
from bench.models.zoo import MODELS, Model
from bench.setup import models, native
from bench.setup.device import Device
from bench.setup.sides import (
    EXCLUSIVE,
    HOISTED,
    LAZY,
    LLVM,
    OURS,
    STOCK,
    TITLES,
    Side,
    all_sides,
    by_hand_runtime,
)
from bench.show.figures import Figure, Result, Step, median, ratios
from mgpu_rt._lowering.toolchain import LoweringFailed

METHOD = (
    f"Microseconds a forward pass, the device's work included: {ROUNDS} The output of every round "
    "is compared with NumPy's. By hand: the program over an ideal runtime, which keeps module, "
    "stream, memory and registration, and asks and checks nothing. The kernels are what MLIR's "
    "ordinary passes make of linalg, not tuned. An asynchronous chain with host_shared is missing: "
    "MLIR has no lowering for an allocation that is both."
)
SIDES = (STOCK, LLVM, OURS, EXCLUSIVE, LAZY)
MOST = 10_000  # passes in a round
EMULATED = 3  # number of models on an emulated device, which takes minutes for each other one

#: For each model, variant and release: LLVM's own library must take at least this multiple of this
#: library's time.
GAINS = {
    ("block", WAITS, 19): 4.4,
    ("block", WAITS, 22): 2.3,
    ("block", CHAIN, 19): 5.4,
    ("block", CHAIN, 22): 1.2,
    ("blocks", CHAIN, 19): 5.8,
    ("blocks", CHAIN, 22): 2.2,
    ("block", SHARED, 19): 1.5,
    ("block", SHARED, 22): 1.2,
    ("block", REGISTERED, 19): 1.2,
    ("block", REGISTERED, 22): 1.1,
}
NO_HOST_SHARED = (
    "LLVM's ROCm runtime hands out device memory for host_shared, which the host faults on"
)
#: If a variant allocates memory only once, this library may take at most this multiple of the time
#: by hand.
WITHIN = 1.05
#: With an option, this library may take at most this multiple of the time by hand. EXCLUSIVE keeps
#: memory registered, and LAZY postpones waits.
WITH_A_WORD = {(REGISTERED, EXCLUSIVE): 1.10, (WAITS, LAZY): 0.75}
#: The target for the smallest of all gains.
NOT_SLOWER = 1.0
#: The permitted ratio of the time with host_shared to the time with device memory.
SHARED_AT_MOST = 2.0


def run(
    device: Device,
    repetitions: int,
    llvm_runtime: Path | None,
    step: Step,
    names: Sequence[str] = (),
) -> Result:
    """Measures each model in each variant with each release; the sides take turns for
    ``repetitions`` rounds. ``names`` are the models to measure; empty: all, on an emulated device
    EMULATED models."""
    native.need(native.RUNTIME)
    sides = [side for side in all_sides(device, llvm_runtime) if side.name in SIDES]
    sides.append(by_hand_runtime(device))
    result = Result("models", device.title, METHOD, on=device.name)
    chosen = [model for model in MODELS if model.name in names]
    for model in chosen or (MODELS if device.real else MODELS[:EMULATED]):
        for llvm in models.RELEASES:
            for variant in variants(model):
                step(f"{model.name}, {variant.name}, LLVM {llvm}")
                label = {"model": model.name, "variant": variant.name, "llvm": llvm}
                try:
                    program = models.executable(model, variant, llvm, device.chip)
                except LoweringFailed as failed:
                    result.data.append({**label, "left_out": failed.complaint.splitlines()[0]})
                    continue
                crash = [side for side in sides if _crashes(side, variant, device)]
                reason = {"left_out": NO_HOST_SHARED}
                result.data.extend({**label, "side": side.name, **reason} for side in crash)
                run_by = [side for side in sides if side not in crash]
                samples = _measure(program, run_by, repetitions)
                result.data.extend(_data(label, samples))
                result.figures.extend(_figures(model, variant, llvm, device, samples))
            result.figures.extend(_shared(model, llvm, device, result.data))
    result.figures.extend(_least(device, result.figures))
    return result


def _least(device: Device, figures: Sequence[Figure]) -> list[Figure]:
    """Returns the smallest gain over LLVM's own library, which shows whether this library is ever
    slower."""
    gains = [f for f in figures if f.name.endswith(f"{TITLES[LLVM]} / {TITLES[OURS]}")]
    if not gains:
        return []
    least = min(gains, key=lambda figure: figure.value)
    name = f"the least gain: {least.name}"
    return [Figure(name, least.value, "", at_least=NOT_SLOWER if device.real else None)]


def _crashes(side: Side, variant: Variant, device: Device) -> bool:
    """Returns whether the program crashes. Stock's host_shared crashes on real devices, but not on
    an emulated device, which uses the host's memory."""
    return variant is SHARED and side.name == STOCK and device.real


def _measure(program: Path, sides: Sequence[Side], repetitions: int) -> dict[str, list[float]]:
    """For each runtime, returns the microseconds of a forward pass in each turn."""
    processes = {side.name: ([str(program)], side.environment) for side in sides}
    taken = turns(processes, repetitions, MOST, random.Random(program.name))
    return {side: [ns / 1e3 for ns in each] for side, each in taken.items()}


def _data(label: Mapping[str, Any], samples: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    figures = {side: median("", taken, "") for side, taken in samples.items()}
    return [
        {**label, "side": side, "us": figure.value, "low": figure.low, "high": figure.high}
        for side, figure in figures.items()
    ]


def _title(model: Model, variant: Variant, llvm: int) -> str:
    return f"{model.name}, {variant.name}, LLVM {llvm}"


def _figures(
    model: Model, variant: Variant, llvm: int, device: Device, samples: Mapping[str, list[float]]
) -> list[Figure]:
    title = _title(model, variant, llvm)
    figures = [median(f"{title}, {TITLES[side]}", taken, "µs") for side, taken in samples.items()]
    for base in (STOCK, LLVM):
        if base not in samples:
            continue
        gain = GAINS.get((model.name, variant, llvm)) if base == LLVM else None
        figures.append(
            median(
                f"{title}, {TITLES[base]} / {TITLES[OURS]}",
                ratios(samples[base], samples[OURS]),
                "",
                at_least=gain if device.real else None,
            )
        )
    for side in (OURS, EXCLUSIVE, LAZY):
        of_by_hand = ratios(samples[side], samples[HOISTED])
        within = WITHIN if variant in (CHAIN, WAITS) and side == OURS else None
        limit = WITH_A_WORD.get((variant, side), within) if device.real else None
        name = f"{title}, {TITLES[side]} / {TITLES[HOISTED]}"
        figures.append(median(name, of_by_hand, "", at_most=limit))
    return figures


def _shared(
    model: Model, llvm: int, device: Device, data: Sequence[Mapping[str, Any]]
) -> list[Figure]:
    """Returns the time with host_shared relative to the time with device memory; both programs wait
    after each operation."""
    taken = {
        row["variant"]: row["us"]
        for row in data
        if (row["model"], row["llvm"], row.get("side")) == (model.name, llvm, OURS)
    }
    if SHARED.name not in taken or WAITS.name not in taken:
        return []
    ratio = taken[SHARED.name] / taken[WAITS.name]
    title = f"{model.name}, LLVM {llvm}, {TITLES[OURS]}, host_shared / device memory"
    return [Figure(title, ratio, "", at_most=SHARED_AT_MOST if device.real else None)]
