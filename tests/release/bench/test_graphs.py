"""The benchmark of graphs: a replay computes the results of a pass, and makes no other calls to
HIP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.measure.models import GRAPHED
from bench.measure.rounds import Runner
from bench.models.program import Variant
from bench.models.zoo import MODELS
from bench.setup import build, device, models, sides
from tests.support.patience import run_process

pytestmark = pytest.mark.nightly  # models are built by all variants and releases

MLP = MODELS[0]
SIDES = (sides.GRAPH, sides.HAND_GRAPH)


def graph_side(name: str, on: device.Device) -> sides.Side:
    return next(side for side in sides.graph_sides(on) if side.name == name)


def run(name: str, variant: Variant, llvm: int, on: device.Device) -> None:
    side = graph_side(name, on)
    runner = Runner([str(models.executable(MLP, variant, llvm, on.chip))], side.environment)
    for _ in range(3):
        assert runner.round(2) > 0
    runner.close()


@pytest.mark.parametrize("llvm", models.RELEASES)
@pytest.mark.parametrize("variant", GRAPHED, ids=lambda variant: variant.name)
@pytest.mark.parametrize("name", SIDES)
def test_a_replayed_model_computes_what_numpy_does(name: str, variant: Variant, llvm: int) -> None:
    run(name, variant, llvm, device.find("softgpu"))


@pytest.mark.parametrize("name", SIDES)
def test_replays_are_one_launch_and_one_wait_each(name: str, tmp_path: Path) -> None:
    on, log = device.find("stub"), tmp_path / "log"
    program = build.executable("forum", 19, on.chip, build.IN_A_GRAPH)
    counted = []
    more = {"HIPSTUB_MODE": "record", "HIPSTUB_LOG": str(log), "MGPU_RT_EXCLUSIVE": "on"}
    for replays in (3, 10):
        env = {**graph_side(name, on).environment, **more}
        run_process([program], env, input=f"1\n{replays}\n")
        counted.append(json.loads(log.read_text())["counts"])
    few, many = counted
    added = {call: many[call] - few[call] for call in many if many[call] != few[call]}
    assert added == {"hipGraphLaunch": 7, "hipStreamSynchronize": 7}
    assert few["hipGraphAddKernelNode"] % build.IN_A_GRAPH == 0
    assert few["hipModuleLaunchKernel"] == build.IN_A_GRAPH  # the pass before
