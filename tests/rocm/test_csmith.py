"""A sample of the random C programs: `make check-amd` has them all."""

from __future__ import annotations

import shutil

import pytest

from tests.rocm.csmith import runner
from tests.rocm.csmith.program import CLANG, fetch
from tests.rocm.packages import PackagesMissing
from tests.rocm.surroundings import Surroundings

pytestmark = pytest.mark.timeout(600)

SAMPLE = [*range(8), 128]  # the last one calls more than 64 functions


@pytest.mark.parametrize("chip", runner.CHIPS)
def test_random_c_programs(here: Surroundings, chip: str) -> None:
    if not shutil.which(CLANG):
        pytest.skip(f"{CLANG} is missing (apt-get install {CLANG})")
    try:
        csmith = fetch()
    except PackagesMissing as reason:
        pytest.skip(str(reason))
    seeds = [seed for seed in SAMPLE if runner.place(seed)[1] == chip]
    outcomes = runner.run(csmith, runner.Machine(here, chip), seeds)
    assert set(outcomes.values()) == {(runner.RIGHT, "")}
