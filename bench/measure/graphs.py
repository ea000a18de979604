"""Measures lowered functions that are replayed as one graph: the models, and fifty launches of the
forum's kernel.

Every round's output of a model is compared with NumPy's, outside the timed part.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Request, compare
from bench.measure.compare import Ratio, Samples
from bench.measure.rounds import METHOD as ROUNDS
from bench.measure.rounds import Runner
from bench.models.program import CHAIN, COPIED, WAITS
from bench.models.zoo import MODELS
from bench.setup import build, models, native
from bench.setup.device import Device
from bench.setup.sides import (
    GRAPH,
    HAND_GRAPH,
    HOISTED,
    LLVM,
    OURS,
    STOCK,
    TITLES,
    Side,
    all_sides,
    by_hand_runtime,
    graph_sides,
)
from bench.show.figures import Figure, Result, median

METHOD = (
    "Microseconds a pass, the device's work included, and a wait after each: a pass is the model's "
    f"forward function, or {build.IN_A_GRAPH} launches of the forum's kernel. {ROUNDS} "
    "The graph is built once by mgpu_rt_graph_begin and mgpu_rt_graph_end around the pass, after "
    "one that ran plainly. By hand: a runtime that keeps all and asks nothing; as a graph, it adds "
    "a node a call to a chain. Building: the median of nine, instantiating included."
)
FORUM = "forum"
VARIANTS = (CHAIN, WAITS, COPIED)
SIDES = (STOCK, LLVM, OURS)
EMULATED = ("mlp", "block")  # the models on an emulated device

#: For every pass, our graph may take at most this multiple of the hand-written graph's time.
WITHIN = 1.03
#: For the model "block", our graph may take at most this fraction of the hand-written pass's time.
#: The hand-written pass runs without a graph, and a key is a variant's name.
OF_BY_HAND = {CHAIN.name: 0.82, WAITS.name: 0.37, COPIED.name: 0.85}
#: For the model "block", LLVM's own library must take at least this multiple of our graph's time. A
#: key is a variant's name and an LLVM release.
GAINS = {(CHAIN.name, 19): 10.0, (WAITS.name, 19): 12.0, (WAITS.name, 22): 4.5}
#: A launch of the forum's kernel in our graph may take at most this many microseconds.
LAUNCH = 1.1


@dataclass(frozen=True)
class Pass:
    """A pass that becomes a graph, and the executable that runs the pass in rounds."""

    program: str
    variant: str  # empty: the program has no variant
    llvm: int
    executable: Path
    launches: int = 1  # launches in one iteration; the models' passes are whole

    @property
    def title(self) -> str:
        return f"{', '.join(filter(None, (self.program, self.variant)))}, LLVM {self.llvm}"


def run(asked: Request) -> Result:
    """Measures rounds of each runtime, for each pass."""
    native.need(native.RUNTIME)
    device = asked.device
    sides = [side for side in all_sides(device, asked.llvm_runtime) if side.name in SIDES]
    graphs = graph_sides(device)
    sides += [by_hand_runtime(device), *graphs]
    result = Result("graphs", device.title, METHOD, on=device.name)
    for each in _passes(device, asked.models):
        asked.step(each.title)
        building = {side.name: _building(each, side) for side in graphs}
        processes = {side.name: ([str(each.executable)], side.environment) for side in sides}
        samples = compare.measure(processes, asked.repetitions, random.Random(each.title))
        label = {"program": each.program, "variant": each.variant, "llvm": each.llvm}
        label["launches"] = each.launches
        for row in compare.rows(label, samples):
            side = row["side"]
            more = {"building_us": building[side]} if side in building else {}
            result.data.append(row | more)
        result.figures.extend(_figures(each, device, samples))
    return result


def _passes(device: Device, names: Sequence[str]) -> list[Pass]:
    found = [
        Pass(
            FORUM,
            "",
            llvm,
            build.executable(FORUM, llvm, device.chip, build.IN_A_GRAPH),
            build.IN_A_GRAPH,
        )
        for llvm in models.RELEASES
    ]
    if device.name == "stub":
        return found  # the forum's kernel computes nothing
    return found + [
        Pass(model.name, variant.name, llvm, models.executable(model, variant, llvm, device.chip))
        for model in MODELS
        if not model.tokens
        if (model.name in names if names else device.real or model.name in EMULATED)
        for variant in VARIANTS
        for llvm in models.RELEASES
    ]


def _building(each: Pass, side: Side) -> float:
    """Returns the microseconds to build the graph, measured in a separate process."""
    runner = Runner([str(each.executable)], side.environment)
    try:
        taken = runner.round(1) / 1e3
        runner.close()
    finally:
        runner.kill()
    return taken


def _figures(each: Pass, device: Device, samples: Samples) -> list[Figure]:
    is_block = each.program == "block"
    pairs = (
        Ratio(GRAPH, HAND_GRAPH, at_most=WITHIN),
        Ratio(GRAPH, HOISTED, at_most=OF_BY_HAND[each.variant] if is_block else None),
        Ratio(OURS, GRAPH),
        Ratio(STOCK, GRAPH),
        Ratio(LLVM, GRAPH, at_least=GAINS.get((each.variant, each.llvm)) if is_block else None),
    )
    figures = compare.figures(each.title, samples, pairs, device.real)
    if each.program == FORUM:
        taken = [us / each.launches for us in samples[GRAPH]]
        limit = LAUNCH if device.real else None
        name = f"{each.title}, a launch in {TITLES[GRAPH]}"
        figures.append(median(name, taken, "µs", at_most=limit))
    return figures
