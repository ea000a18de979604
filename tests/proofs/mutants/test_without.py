"""Removes one proof at a time, and checks that each test of this proof fails."""

from __future__ import annotations

import pytest

from tests.proofs.mutants import table, witnesses
from tests.proofs.mutants.python import python_without
from tests.support.variants import without

pytestmark = pytest.mark.check  # builds the library once for each proof

CODE = table.in_code()
ROWS = table.rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.proof)
def test_its_tests_fail_without_it(row: table.Row) -> None:
    file = CODE[row.proof][0]
    in_python = file.endswith(".py")
    with python_without(row.proof, file) if in_python else without(row.proof) as library:
        for test in row.tests:
            witnesses.fails(test, row.proof, library)
