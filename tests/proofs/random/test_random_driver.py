"""Runs a sample of the random driver; `make soak` runs the whole driver
(tests/proofs/random/README.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.proofs.programs import images
from tests.proofs.random import programs, runner
from tests.support.suites import in_check

SAMPLES = {
    "stub": (runner.STUB, 25, 15),
    "stub, reuse": (runner.REUSE, 25, 15),
    "stub, held": (runner.HELD, 15, 5),
    "stub, little memory": (runner.SMALL, 10, 5),
    "stub, two devices": (runner.TWO, 10, 10),
    "stub, pinned pages": (runner.PINS, 20, 5),
    "softgpu": (runner.SOFTGPU, 6, 6),
    "softgpu, two devices": (runner.SOFTGPU_TWO, 3, 3),
}
#: `make test` plays an eighth of the programs, `make check` half.
PARTS = in_check([8, 2], lambda part: part == 2)
#: Random programs omit the actions with these names (script.py), so that a known fault does not
#: appear again. Commas separate the names.
WITHOUT = tuple(filter(None, os.environ.get("RANDOM_DRIVER_WITHOUT", "").split(",")))


@pytest.fixture(scope="module", autouse=True)
def _images() -> None:
    images.write("gfx90a")


def _sample(examples: int):
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=quiet,
        phases=[Phase.generate],  # shrinking takes minutes; a failing case is saved unchanged
    )


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("exits", [False, True])
@pytest.mark.parametrize("name", SAMPLES)
def test_random_programs_do_what_stock_does(name: str, exits: bool, part: int) -> None:
    device, many, one = SAMPLES[name]
    _play(device, runner.ALL, max(1, (one if exits else many) // part), exits=exits)


@pytest.mark.parametrize("part", in_check([8, 3], lambda part: part == 3))
@pytest.mark.parametrize("side", runner.IN_PYTHON, ids=lambda side: side.name)
@pytest.mark.parametrize("name", in_check(["stub", "softgpu"], lambda name: name != "stub"))
def test_random_programs_with_runtimes_in_python_do_what_stock_does(
    name: str, side: runner.Side, part: int
) -> None:
    device, _, one = SAMPLES[name]
    _play(device, (side,), max(1, one // part), exits=False)


def _play(
    device: runner.Device, sides: Sequence[runner.Side], examples: int, *, exits: bool
) -> None:
    @_sample(examples)
    @given(st.data())
    def play(data) -> None:
        plans = programs.plans(device, sides, exits=exits, without=WITHOUT)
        programs.check(data.draw(plans))

    play()
