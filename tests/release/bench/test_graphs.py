"""The benchmark of graphs: a replay computes the results of a pass, and makes no other calls to
HIP."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from bench.measure import graphs
from bench.measure.graphs import VARIANTS
from bench.measure.rounds import Runner
from bench.models.program import CHAIN, Variant
from bench.models.zoo import MODELS
from bench.setup import build, device, models, native, sides
from bench.show import table
from tests.support.patience import HANG

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
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("name", SIDES)
def test_a_replayed_model_computes_what_numpy_does(name: str, variant: Variant, llvm: int) -> None:
    run(name, variant, llvm, device.find("softgpu"))


@pytest.mark.parametrize("name", SIDES)
def test_a_wrong_output_of_a_replay_is_noticed(name: str) -> None:
    """The stub computes nothing, so the output is wrong."""
    with pytest.raises(native.Failed, match=r"wrong output: .* in place of "):
        run(name, CHAIN, 22, device.find("stub"))


@pytest.mark.parametrize("name", SIDES)
def test_replays_are_one_launch_and_one_wait_each(name: str, tmp_path: Path) -> None:
    on, log = device.find("stub"), tmp_path / "log"
    program = build.executable("forum", 19, on.chip, build.IN_A_GRAPH)
    counted = []
    more = {"HIPSTUB_MODE": "record", "HIPSTUB_LOG": str(log), "MGPU_RT_EXCLUSIVE": "on"}
    for replays in (3, 10):
        env = {**graph_side(name, on).environment, **more}
        subprocess.run(
            [program],
            env=env,
            input=f"1\n{replays}\n",
            text=True,
            capture_output=True,
            timeout=HANG,
        )
        counted.append(json.loads(log.read_text())["counts"])
    few, many = counted
    added = {call: many[call] - few[call] for call in many if many[call] != few[call]}
    assert added == {"hipGraphLaunch": 7, "hipStreamSynchronize": 7}
    assert few["hipGraphAddKernelNode"] % build.IN_A_GRAPH == 0
    assert few["hipModuleLaunchKernel"] == build.IN_A_GRAPH  # the pass before


def test_the_forum_is_measured_without_a_device() -> None:
    on = dataclasses.replace(device.find("stub"), repetitions=3)
    result = graphs.run(on, 3, None, lambda _: None)
    assert {(row["program"], row["llvm"], row["side"]) for row in result.data} == {
        ("forum", llvm, side)
        for llvm in models.RELEASES
        for side in (sides.STOCK, sides.OURS, sides.HOISTED, *SIDES)
    }
    names = {figure.name for figure in result.figures}
    assert "forum, LLVM 19, mgpu_rt's graph / graph by hand" in names
    assert "forum, LLVM 22, building mgpu_rt's graph, in plain passes" in names


def test_the_picture_and_the_table_show_the_results(tmp_path: Path) -> None:
    data = [
        {"program": "block", "variant": variant.name, "llvm": llvm, "side": side, "us": 100.0 + us}
        | ({"building_us": 500.0} if side in SIDES else {})
        for variant in VARIANTS
        for llvm in models.RELEASES
        for us, side in enumerate((sides.LLVM, sides.OURS, sides.HOISTED, *SIDES))
    ]
    benchmark = {"name": "graphs", "on": "cuda", "device": "a GPU", "data": data}
    results = {"date": "2026-11-23", "benchmarks": {"graphs-cuda": benchmark}}
    pytest.importorskip("matplotlib")
    from bench.show import plot

    drawn = plot.draw(results, tmp_path / "results.json")
    assert drawn is not None and drawn.name == "results-graphs-cuda.png" and drawn.exists()
    assert "| block, waits, LLVM 22 | 100 | 101 | 102 | 103 | 104 | 4.95 |" in table.graphs(
        results, "cuda"
    )


def test_targets_count_on_a_gpu_only() -> None:
    block = graphs.Pass("block", "waits", 22, Path())
    samples = {side: [2.0] * 3 for side in (sides.LLVM, sides.OURS, sides.HOISTED, *SIDES)}
    stub = device.find("stub")
    for name, targets in (("cuda", {"≤ 1.03", "≤ 0.37", "≥ 4.5"}), ("softgpu", set())):
        on = dataclasses.replace(stub, name=name)
        figures = graphs._figures(block, on, samples, dict.fromkeys(SIDES, 100.0))
        assert {figure.target for figure in figures} - {""} == targets
