"""`mgpu-rt check` finds each seeded fault, with its kind and its line."""

from __future__ import annotations

import pytest

from tests.python.cli.check.mutants import streams, waves
from tests.python.cli.check.mutants.form import Mutant, assert_found

MUTANTS = (*waves.MUTANTS, *streams.MUTANTS)


def name(mutant: Mutant) -> str:
    return f"{mutant.source.rsplit('/', 1)[1]} {mutant.after} {mutant.what}".replace(" ", "-")


@pytest.mark.check
@pytest.mark.parametrize("mutant", MUTANTS, ids=name)
def test_a_seeded_fault_is_found(mutant: Mutant) -> None:
    assert_found(mutant)
