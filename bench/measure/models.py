"""Measures models with real operations, in variants of memory management and synchronisation: call
by call, and each pass as one graph.

Every round's output is compared with NumPy's, outside the timed part.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import Request, compare
from bench.measure.compare import Ratio
from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import Runner, turns
from bench.models.program import CHAIN, COPIED, REGISTERED, SHARED, WAITS, Variant, variants
from bench.models.zoo import MODELS, Model
from bench.setup import build, models, native
from bench.setup.device import Device
from bench.setup.sides import (
    EXCLUSIVE,
    GRAPH,
    HAND_GRAPH,
    HOISTED,
    LAZY,
    LLVM,
    OURS,
    STOCK,
    TITLES,
    Side,
    all_sides,
    by_hand_runtime,
    graph_sides,
)
from bench.show.figures import Result, median
from mgpu_rt._lowering.toolchain import LoweringFailed

EMULATED = 2  # number of models on an emulated device, which takes minutes for each other one


def _models(asked: Request) -> Sequence[Model]:
    if asked.models:
        return [model for model in MODELS if model.name in asked.models]
    return MODELS if asked.device.real else MODELS[:EMULATED]


def _sides(asked: Request, names: Iterable[str]) -> list[Side]:
    """Returns the sides of these names, and the side by hand."""
    native.need(native.RUNTIME)
    found = all_sides(asked.device, asked.llvm_runtime)
    return [*(side for side in found if side.name in names), by_hand_runtime(asked.device)]


def _measure(
    asked: Request,
    result: Result,
    program: Path,
    label: Mapping[str, Any],
    sides: Iterable[Side],
    pairs: Iterable[Ratio],
) -> compare.Samples:
    """Adds the rows and the figures of a program; the sides take turns."""
    processes = {side.name: ([str(program)], side.environment) for side in sides}
    try:
        samples = turns(processes, asked.repetitions, random.Random(program.name))
    except native.Failed as failed:  # the other programs' results stay
        result.data.append({**label, "failed": str(failed)})
        return {}
    result.data.extend(compare.rows(label, samples))
    title = _title(label)
    result.figures.extend(compare.figures(title, samples, pairs, asked.device.real))
    return samples


def _title(label: Mapping[str, Any]) -> str:
    name = label.get("model") or label["program"]
    return ", ".join(filter(None, (name, label["variant"], f"LLVM {label['llvm']}")))


# ---- call by call --------------------------------------------------------------------------------

METHOD = (
    f"Microseconds a forward pass, the device's work included: {ROUNDS} The output of every round "
    "is compared with NumPy's. By hand: the program over an ideal runtime, which keeps module, "
    "stream, memory and registration, and asks and checks nothing. The kernels are what MLIR's "
    "ordinary passes make of linalg, not tuned. An asynchronous chain with host_shared is missing: "
    "MLIR has no lowering for an allocation that is both."
)
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
    """Measures each model in each variant with each release."""
    device = asked.device
    result = Result("models", device.title, METHOD, on=device.name)
    sides = _sides(asked, (STOCK, LLVM, OURS, EXCLUSIVE, LAZY))
    for model in _models(asked):
        for llvm in models.RELEASES:
            for variant in variants(model):
                label = {"model": model.name, "variant": variant.name, "llvm": llvm}
                asked.step(_title(label))
                try:
                    program = models.executable(model, variant, llvm, device.chip)
                except LoweringFailed as failed:
                    result.data.append({**label, "left_out": failed.complaint.splitlines()[0]})
                    continue
                crash = [side for side in sides if _crashes(side, variant, device)]
                reason = {"left_out": NO_HOST_SHARED}
                result.data.extend({**label, "side": side.name, **reason} for side in crash)
                safe = [side for side in sides if side not in crash]
                _measure(asked, result, program, label, safe, _pairs(model, variant, llvm))
    return result


def _crashes(side: Side, variant: Variant, device: Device) -> bool:
    """Returns whether the program crashes. Stock's host_shared crashes on real devices, but not on
    an emulated device, which uses the host's memory."""
    return variant is SHARED and side.name == STOCK and device.real


def _pairs(model: Model, variant: Variant, llvm: int) -> list[Ratio]:
    within = {OURS: WITHIN} if variant in (CHAIN, WAITS) else {}
    return [
        Ratio(STOCK, OURS),
        Ratio(LLVM, OURS, at_least=GAINS.get((model.name, variant, llvm))),
        *(
            Ratio(side, HOISTED, at_most=WITH_A_WORD.get((variant, side), within.get(side)))
            for side in (OURS, EXCLUSIVE, LAZY)
        ),
    ]


# ---- as one graph --------------------------------------------------------------------------------

AS_GRAPHS = (
    "Microseconds a pass, the device's work included, and a wait after each: a pass is the model's "
    f"forward function, or {build.IN_A_GRAPH} launches of the forum's kernel. {ROUNDS} "
    "The graph is built once by mgpu_rt_graph_begin and mgpu_rt_graph_end around the pass, after "
    "one that ran plainly. By hand: a runtime that keeps all and asks nothing; as a graph, it adds "
    "a node a call to a chain. Building: the median of nine, instantiating included."
)
GRAPHED = (CHAIN, WAITS, COPIED)

#: For every pass, our graph may take at most this multiple of the hand-written graph's time.
WITHIN_BY_HAND = 1.03
#: For the model "block", our graph may take at most this fraction of the hand-written pass's time,
#: which runs without a graph.
OF_BY_HAND = {CHAIN: 0.82, WAITS: 0.37, COPIED: 0.85}
#: For the model "block", a variant and a release: LLVM's own library must take at least this
#: multiple of our graph's time.
GRAPH_GAINS = {(CHAIN, 19): 10.0, (WAITS, 19): 12.0, (WAITS, 22): 4.5}
#: A launch of the forum's kernel in our graph may take at most this many microseconds.
LAUNCH = 1.1


def run_graphs(asked: Request) -> Result:
    """Measures passes of the models, and launches of the forum's kernel."""
    device = asked.device
    result = Result("graphs", device.title, AS_GRAPHS, on=device.name)
    sides = _sides(asked, (STOCK, LLVM, OURS))
    chip = device.chip
    for llvm in models.RELEASES:
        program = build.executable("forum", llvm, chip, build.IN_A_GRAPH)
        label = {"program": "forum", "variant": "", "llvm": llvm, "launches": build.IN_A_GRAPH}
        pairs = _graph_pairs("forum", None, llvm)
        samples = _graph(asked, result, program, label, sides, pairs)
        if samples:
            taken = [us / build.IN_A_GRAPH for us in samples[GRAPH]]
            name = f"{_title(label)}, a launch in {TITLES[GRAPH]}"
            limit = LAUNCH if device.real else None
            result.figures.append(median(name, taken, "µs", at_most=limit))
    if device.name == "stub":
        return result  # computes nothing
    for model in (one for one in _models(asked) if not one.tokens):
        for variant in GRAPHED:
            for llvm in models.RELEASES:
                program = models.executable(model, variant, llvm, chip)
                label = {"program": model.name, "variant": variant.name, "llvm": llvm}
                pairs = _graph_pairs(model.name, variant, llvm)
                _graph(asked, result, program, {**label, "launches": 1}, sides, pairs)
    return result


def _graph(
    asked: Request,
    result: Result,
    program: Path,
    label: Mapping[str, Any],
    sides: Sequence[Side],
    pairs: Iterable[Ratio],
) -> compare.Samples:
    """Measures a program as calls and as graphs, whose rows get the time to build the graph."""
    asked.step(_title(label))
    graphs = graph_sides(asked.device)
    samples = _measure(asked, result, program, label, [*sides, *graphs], pairs)
    if samples:
        building = {side.name: _building(program, side) for side in graphs}
        for row in result.data[-len(samples) :]:
            if row["side"] in building:
                row["building_us"] = building[row["side"]]
    return samples


def _building(program: Path, side: Side) -> float:
    """Returns the microseconds to build the graph, measured in a separate process."""
    runner = Runner([str(program)], side.environment)
    try:
        taken = runner.round(1) / 1e3
        runner.close()
    finally:
        runner.kill()
    return taken


def _graph_pairs(name: str, variant: Variant | None, llvm: int) -> list[Ratio]:
    block = variant if name == "block" else None
    return [
        Ratio(GRAPH, HAND_GRAPH, at_most=WITHIN_BY_HAND),
        Ratio(GRAPH, HOISTED, at_most=OF_BY_HAND[block] if block else None),
        Ratio(OURS, GRAPH),
        Ratio(STOCK, GRAPH),
        Ratio(LLVM, GRAPH, at_least=GRAPH_GAINS.get((block, llvm)) if block else None),
    ]
