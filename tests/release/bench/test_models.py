"""The models compute NumPy's results, and the harness notices a difference."""

from __future__ import annotations

import pytest

from bench.measure import models as measured
from bench.measure.rounds import Runner
from bench.models import reference
from bench.models.program import CHAIN, SHARED, VARIANTS, WAITS, Variant
from bench.models.zoo import MODELS, Model
from bench.setup import device, models, native, sides
from tests.support.suites import in_check, sampled

BY_NAME = {model.name: model for model in MODELS}
MLP = BY_NAME["mlp"]


def ours(name: str) -> tuple[device.Device, sides.Side]:
    on = device.find(name)
    return on, next(side for side in sides.all_sides(on, None) if side.name == sides.OURS)


def run(model: Model, variant: Variant, llvm: int, name: str = "softgpu") -> None:
    on, side = ours(name)
    runner = Runner([str(models.executable(model, variant, llvm, on.chip))], side.environment)
    for _ in range(2):
        runner.round(1)
    runner.close()


# ---- the models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_outputs_are_of_a_size_that_shows_mistakes(model: Model) -> None:
    output = reference.output(model)
    assert 0.1 < abs(output).max() < 100
    assert output.std() > 0.05


# ---- on a device ---------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_variant_computes_what_numpy_does(variant: Variant) -> None:
    run(MLP, variant, 22)


@pytest.mark.parametrize("name", sampled(["block", "blocks"], ["block"]))
def test_models_compute_what_numpy_does(name: str) -> None:
    run(BY_NAME[name], CHAIN if name == "blocks" else SHARED, 19)


@pytest.mark.parametrize(
    ("variant", "llvm"), in_check([(CHAIN, 22), (WAITS, 19)], lambda *_: True), ids=str
)
def test_a_decoder_computes_what_numpy_does(variant: Variant, llvm: int) -> None:
    """Each token allocates caches with one more row."""
    run(BY_NAME["decode"], variant, llvm)


@pytest.mark.nightly
@pytest.mark.parametrize("llvm", models.RELEASES)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_by_hand_computes_the_same(variant: Variant, llvm: int) -> None:
    on = device.find("softgpu")
    side = sides.by_hand_runtime(on)
    runner = Runner([str(models.executable(MLP, variant, llvm, on.chip))], side.environment)
    for _ in range(2):
        runner.round(2)
    runner.close()


@pytest.mark.check
def test_a_wrong_output_is_noticed() -> None:
    """The stub computes nothing, so the output is wrong."""
    with pytest.raises(native.Failed, match=r"wrong output: .* in place of "):
        run(MLP, WAITS, 22, "stub")


# ---- the measurement -----------------------------------------------------------------------------


def test_every_target_is_of_a_model_and_a_variant() -> None:
    assert {(name, variant) for name, variant, _ in measured.GAINS} <= {
        (model.name, variant) for model in MODELS for variant in VARIANTS
    }
