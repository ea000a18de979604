"""The models compute NumPy's results, and the harness notices a difference."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from bench.measure import models as measured
from bench.measure.rounds import Runner
from bench.models import program, reference
from bench.models.numbers import numbers
from bench.models.program import CHAIN, SHARED, VARIANTS, WAITS, Variant
from bench.models.zoo import MODELS, Model
from bench.setup import device, models, native, sides
from mgpu_rt._lowering import cache, lower, toolchain
from tests.support.patience import HANG
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


def test_models_have_as_many_kernels_as_they_say() -> None:
    counted = {model.name: model.graph().kernels for model in MODELS}
    assert counted == {"mlp": 11, "cnn": 13, "block": 45, "blocks": 45, "dense": 300} | {
        "decode": 50
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_outputs_are_of_a_size_that_shows_mistakes(model: Model) -> None:
    output = reference.output(model)
    assert 0.1 < abs(output).max() < 100
    assert output.std() > 0.05


def test_random_numbers_do_not_repeat() -> None:
    some = numbers((1000,), 1, 0.5)
    assert len(set(some.tolist())) == 1000
    assert abs(some).max() <= 0.5
    assert abs(some.mean()) < 0.05
    assert not (some == numbers((1000,), 2, 0.5)).any()


# ---- on a device ---------------------------------------------------------------------------------


CHECK, NIGHTLY = pytest.mark.check, pytest.mark.nightly


@NIGHTLY
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_variant_computes_what_numpy_does(variant: Variant) -> None:
    run(MLP, variant, 22)


@pytest.mark.parametrize("name", sampled(["cnn", "block", "blocks"], ["cnn", "block"]))
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


@pytest.mark.nightly
def test_by_hand_keeps_all_that_can_be_kept(tmp_path: Path) -> None:
    """A run of three passes makes as many calls to HIP as a run of one pass, except for launches,
    copies and waits."""
    on, log = device.find("stub"), tmp_path / "log"
    side = sides.by_hand_runtime(on)
    env = {**side.environment, "HIPSTUB_MODE": "record", "HIPSTUB_LOG": str(log)}
    for variant in VARIANTS:
        program = models.executable(MLP, variant, 19, on.chip)
        subprocess.run(
            [program], env=env, input="3\n", text=True, capture_output=True, timeout=HANG
        )
        counts = json.loads(log.read_text())["counts"]
        assert counts["hipModuleLaunchKernel"] == 3 * MLP.graph().kernels
        assert counts["hipModuleLoadData"] == counts["hipModuleGetFunction"]
        assert counts["hipModuleLoadData"] <= MLP.graph().kernels
        assert counts["hipStreamCreate"] == 1
        assert counts.get("hipMalloc", 0) + counts.get("hipMallocManaged", 0) == 1
        assert "hipFree" not in counts and "hipHostUnregister" not in counts
        assert counts.get("hipHostRegister", 0) == (8 if variant.name == "registered" else 0)


@pytest.mark.check
def test_a_wrong_output_is_noticed() -> None:
    """The stub computes nothing, so the output is wrong."""
    with pytest.raises(native.Failed, match=r"wrong output: .* in place of "):
        run(MLP, WAITS, 22, "stub")


# ---- the measurement -----------------------------------------------------------------------------


def test_a_model_that_cannot_be_lowered_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Path:
        raise toolchain.LoweringFailed(["mlir-opt"], 1, "no lowering\nfor this")

    monkeypatch.setattr(models, "executable", refuse)
    on, _ = ours("stub")
    result = measured.run(on, 3, None, lambda _: None)
    assert len(result.data) == measured.EMULATED * len(VARIANTS) * 2
    assert {row["left_out"] for row in result.data} == {"no lowering"}
    assert result.figures == []


@pytest.mark.check
def test_no_variant_is_both_shared_and_chained() -> None:
    """MLIR cannot yet lower a variant that is both shared and chained, so no benchmark measures
    this variant."""
    both = dataclasses.replace(SHARED, chained=True)
    text = program.source(MLP, SHARED)
    with pytest.raises(toolchain.LoweringFailed, match=r"gpu\.async\.token|host_shared"):
        lower.lower(_written(text), llvm=22, first=both.passes)


def _written(text: str) -> Path:
    path = native.OUT / "models" / "both.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.check
def test_prepared_models_run_without_the_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on, _ = ours("stub")
    made = models.executable(MLP, CHAIN, 22, on.chip)

    def missing(name: str, llvm: int) -> Path:
        raise toolchain.ToolchainMissing(f"{name}-{llvm}", f"llvm-{llvm}")

    monkeypatch.setattr(toolchain, "tool", missing)
    monkeypatch.setattr(cache, "OBJECTS", tmp_path)
    assert models.executable(MLP, CHAIN, 22, on.chip) == made


def test_every_target_is_of_a_model_and_a_variant() -> None:
    assert {(name, variant) for name, variant, _ in measured.GAINS} <= {
        (model.name, variant) for model in MODELS for variant in VARIANTS
    }
