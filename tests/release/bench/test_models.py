"""The models compute NumPy's results on each side, as a graph too, and the harness notices a
difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.measure.models import GRAPHED
from bench.measure.rounds import Runner
from bench.models import reference
from bench.models.program import CHAIN, SHARED, VARIANTS, WAITS, Variant
from bench.models.zoo import MODELS, Model
from bench.setup import build, device, models, native, sides
from tests.support.patience import run_process
from tests.support.suites import sampled

MLP = "mlp"
BY_HAND = "by hand"


def side(name: str, on: device.Device) -> sides.Side:
    if name == BY_HAND:
        return sides.by_hand_runtime(on)
    every = [*sides.all_sides(on, None), *sides.graph_sides(on)]
    return next(each for each in every if each.name == name)


def run(of: str, model: str, variant: Variant, llvm: int, name: str = "softgpu") -> None:
    """Runs a model on a side; the program compares its output with NumPy's."""
    on = device.find(name)
    (built,) = (each for each in MODELS if each.name == model)
    program = models.executable(built, variant, llvm, on.chip)
    runner = Runner([str(program)], side(of, on).environment)
    for _ in range(2):
        assert runner.round(2) > 0
    runner.close()


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_outputs_are_of_a_size_that_shows_mistakes(model: Model) -> None:
    output = reference.output(model)
    assert 0.1 < abs(output).max() < 100
    assert output.std() > 0.05


#: `make check` runs these.
SAMPLE = [(sides.OURS, "block", SHARED, 19), (sides.OURS, "block", WAITS, 19)]
#: Each token of `decode` allocates caches with one more row.
RUNS = [
    *SAMPLE,
    (sides.OURS, "decode", CHAIN, 22),
    (sides.OURS, "decode", WAITS, 19),
    (sides.OURS, "blocks", CHAIN, 19),
    *((sides.OURS, MLP, variant, 22) for variant in VARIANTS),
    *((BY_HAND, MLP, variant, llvm) for variant in VARIANTS for llvm in models.RELEASES),
    *(
        (name, MLP, variant, llvm)
        for name in (sides.GRAPH, sides.HAND_GRAPH)
        for variant in GRAPHED
        for llvm in models.RELEASES
    ),
]


@pytest.mark.parametrize(
    "case",
    sampled(RUNS, SAMPLE),
    ids=lambda case: "-".join(map(str, (*case[:2], case[2].name, case[3]))),
)
def test_a_model_computes_what_numpy_does(case: tuple[str, str, Variant, int]) -> None:
    run(*case)


@pytest.mark.check
def test_a_wrong_output_is_noticed() -> None:
    """The stub computes nothing, so the output is wrong."""
    with pytest.raises(native.Failed, match=r"wrong output: .* in place of "):
        run(sides.OURS, MLP, WAITS, 22, "stub")


@pytest.mark.nightly
@pytest.mark.parametrize("name", [sides.GRAPH, sides.HAND_GRAPH])
def test_replays_are_one_launch_and_one_wait_each(name: str, tmp_path: Path) -> None:
    on, log = device.find("stub"), tmp_path / "log"
    program = build.executable("forum", 19, on.chip, build.IN_A_GRAPH)
    counted = []
    more = {"HIPSTUB_MODE": "record", "HIPSTUB_LOG": str(log), "MGPU_RT_EXCLUSIVE": "on"}
    for replays in (3, 10):
        run_process([program], {**side(name, on).environment, **more}, input=f"1\n{replays}\n")
        counted.append(json.loads(log.read_text())["counts"])
    few, many = counted
    added = {call: many[call] - few[call] for call in many if many[call] != few[call]}
    assert added == {"hipGraphLaunch": 7, "hipStreamSynchronize": 7}
    assert few["hipGraphAddKernelNode"] % build.IN_A_GRAPH == 0
    assert few["hipModuleLaunchKernel"] == build.IN_A_GRAPH  # the pass before
