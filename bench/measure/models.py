"""Measures models with real operations, in variants of memory management and synchronisation.

Every round's output is compared with NumPy's, outside the timed part.
"""

from __future__ import annotations

import random

from bench.measure import Request, compare
from bench.measure.compare import Ratio
from bench.measure.rounds import METHOD as ROUNDS
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
    Side,
    all_sides,
    by_hand_runtime,
)
from bench.show.figures import Result
from mgpu_rt._lowering.toolchain import LoweringFailed

METHOD = (
    f"Microseconds a forward pass, the device's work included: {ROUNDS} The output of every round "
    "is compared with NumPy's. By hand: the program over an ideal runtime, which keeps module, "
    "stream, memory and registration, and asks and checks nothing. The kernels are what MLIR's "
    "ordinary passes make of linalg, not tuned. An asynchronous chain with host_shared is missing: "
    "MLIR has no lowering for an allocation that is both."
)
SIDES = (STOCK, LLVM, OURS, EXCLUSIVE, LAZY)
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


def run(asked: Request) -> Result:
    """Measures each model in each variant with each release; the sides take turns."""
    native.need(native.RUNTIME)
    device = asked.device
    sides = [side for side in all_sides(device, asked.llvm_runtime) if side.name in SIDES]
    sides.append(by_hand_runtime(device))
    result = Result("models", device.title, METHOD, on=device.name)
    chosen = [model for model in MODELS if model.name in asked.models]
    for model in chosen or (MODELS if device.real else MODELS[:EMULATED]):
        for llvm in models.RELEASES:
            for variant in variants(model):
                asked.step(title := f"{model.name}, {variant.name}, LLVM {llvm}")
                label = {"model": model.name, "variant": variant.name, "llvm": llvm}
                try:
                    program = models.executable(model, variant, llvm, device.chip)
                except LoweringFailed as failed:
                    result.data.append({**label, "left_out": failed.complaint.splitlines()[0]})
                    continue
                crash = [side for side in sides if _crashes(side, variant, device)]
                reason = {"left_out": NO_HOST_SHARED}
                result.data.extend({**label, "side": side.name, **reason} for side in crash)
                processes = {
                    side.name: ([str(program)], side.environment)
                    for side in sides
                    if side not in crash
                }
                try:
                    samples = compare.measure(
                        processes, asked.repetitions, random.Random(program.name)
                    )
                except native.Failed as failed:  # the other models' results stay
                    result.data.append({**label, "failed": str(failed)})
                    continue
                pairs = _pairs(model, variant, llvm)
                result.data.extend(compare.rows(label, samples))
                result.figures.extend(compare.figures(title, samples, pairs, device.real))
    return result


def _crashes(side: Side, variant: Variant, device: Device) -> bool:
    """Returns whether the program crashes. Stock's host_shared crashes on real devices, but not on
    an emulated device, which uses the host's memory."""
    return variant is SHARED and side.name == STOCK and device.real


def _pairs(model: Model, variant: Variant, llvm: int) -> list[Ratio]:
    gain = GAINS.get((model.name, variant, llvm))
    within = {OURS: WITHIN} if variant in (CHAIN, WAITS) else {}
    return [
        Ratio(STOCK, OURS),
        Ratio(LLVM, OURS, at_least=gain),
        *(
            Ratio(side, HOISTED, at_most=WITH_A_WORD.get((variant, side), within.get(side)))
            for side in (OURS, EXCLUSIVE, LAZY)
        ),
    ]
