"""`mgpu-rt check` reports each seeded fault with its kind and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import ROOT
from tests.python.cli.check.mutants import atomics, kernels, programs, streams, waves
from tests.python.cli.check.mutants.form import Mutant, assert_found, built, reports_of
from tests.support.suites import sampled

SMALL = (*atomics.MUTANTS, *waves.MUTANTS, *streams.MUTANTS, *kernels.MUTANTS)
#: A run of a model takes as long as ten runs of kernels.
SAMPLE = (*SMALL, *programs.SAMPLE)
MUTANTS = (*SMALL, *programs.MUTANTS)


def name(mutant: Mutant) -> str:
    return mutant.name.replace(" ", "-")


@pytest.mark.parametrize("mutant", sampled(MUTANTS, SAMPLE), ids=name)
def test_a_seeded_fault_is_found(mutant: Mutant) -> None:
    assert_found(mutant)


def table() -> str:
    """Returns the table for docs/check.md; a cell is the number of faults that have one class and
    are in one group."""
    groups = {
        "20 kernels": kernels.MUTANTS,
        "streams and waves": (*streams.MUTANTS, *waves.MUTANTS, *atomics.MUTANTS),
        "bench/": programs.MUTANTS,
    }
    rows = []
    for what in sorted({mutant.what for mutant in MUTANTS}):
        counts = [sum(mutant.what == what for mutant in group) for group in groups.values()]
        kinds = sorted({f"`{mutant.kind}`" for mutant in MUTANTS if mutant.what == what})
        cells = [what, ", ".join(kinds), *(str(count or "") for count in counts)]
        rows.append(f"| {' | '.join(cells)} |\n")
    sums = " | ".join(str(len(group)) for group in groups.values())
    head = f"| fault | reported as | {' | '.join(groups)} |\n|---|---|---:|---:|---:|\n"
    return f"{head}{''.join(rows)}| all | | {sums} |\n"


def test_the_page_has_the_faults() -> None:
    assert len(MUTANTS) >= 120
    page = (ROOT / "docs" / "check.md").read_text()
    assert table() in page, table()


@pytest.mark.check
@pytest.mark.parametrize("kernel", kernels.kernels())
def test_a_kernel_without_a_fault_has_none(kernel: str, tmp_path: Path) -> None:
    assert reports_of([built(kernels.program(kernel), tmp_path)], tmp_path) == []
