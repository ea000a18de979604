"""Runs a sample of the random C programs; `make check-amd` runs all programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgpu.tests.csmith import results, runner
from softgpu.tests.csmith.program import Csmith, fetch
from tests.devices.rocm.packages import PackagesMissing
from tests.devices.rocm.surroundings import Surroundings

SAMPLE = [0, 1, 4, 5, 128]  # the last one calls more than 64 functions


@pytest.fixture(scope="module")
def csmith() -> Csmith:
    try:
        return fetch()
    except PackagesMissing as reason:
        pytest.skip(str(reason))


@pytest.mark.nightly  # compiles random C programs
@pytest.mark.parametrize("chip", runner.CHIPS)
def test_random_c_programs_compute_their_sums(
    here: Surroundings, csmith: Csmith, chip: str, tmp_path: Path
) -> None:
    """Every program has a different checksum, so a device that computes nothing fails."""
    seeds = [seed for seed in SAMPLE if runner.place(seed)[1] == chip]
    made = {seed: runner.prepare(csmith, chip, seed, tmp_path) for seed in seeds}
    outcomes = runner.launch(runner.Machine(here, chip), made)
    assert set(outcomes.values()) == {(runner.RIGHT, "")}
    assert len({one.expected for one in made.values()}) == len(seeds)


@pytest.mark.check
def test_random_c_programs_ended_as_expected() -> None:
    outcomes = results.load()
    assert results.unexpected(outcomes) == []
    assert set(results.EXPECTED) <= set(outcomes)
    assert sum(what != runner.ENDLESS for what, _ in outcomes.values()) >= 1000
