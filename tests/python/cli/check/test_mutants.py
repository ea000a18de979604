"""`mgpu-rt check` reports each seeded fault with its kind and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import ROOT
from tests.python.cli.check.mutants import kernels, programs
from tests.python.cli.check.mutants.form import Mutant, assert_found, built, marked, reports_of
from tests.support.suites import sampled

HERE = "tests/python/cli/check"
MARKED = [f"{HERE}/{name}.mlir" for name in ("atomics", "no_races", "streams")]
SEEDED = [each for source in MARKED for each in marked(source)]
#: A run of a model takes as long as ten runs of kernels.
SAMPLE = (*SEEDED[::2], *kernels.MUTANTS[::3], *programs.SAMPLE)
MUTANTS = (*SEEDED, *kernels.MUTANTS, *programs.MUTANTS)


def name(mutant: Mutant) -> str:
    return f"{mutant.of} {mutant.what}".replace(" ", "-")


@pytest.mark.parametrize("mutant", sampled(MUTANTS, SAMPLE), ids=name)
def test_a_seeded_fault_is_found(mutant: Mutant) -> None:
    assert_found(mutant)


def test_the_page_has_the_number_of_the_faults() -> None:
    page = (ROOT / "docs" / "check.md").read_text()
    assert f"Tests seed {len(MUTANTS)} faults" in page


@pytest.mark.parametrize("kernel", sampled(kernels.kernels(), [*kernels.kernels()][::2]))
def test_a_kernel_without_a_fault_has_none(kernel: str, tmp_path: Path) -> None:
    assert reports_of([built(kernels.program(kernel), tmp_path)], tmp_path) == []
