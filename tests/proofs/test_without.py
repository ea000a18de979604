"""Takes out one proof at a time, and sees that each of its tests fails."""

from __future__ import annotations

import pytest

from tests.proofs import table, witnesses
from tests.support.variants import without


@pytest.mark.parametrize("row", table.rows(), ids=lambda row: row.proof)
def test_its_tests_fail_without_it(row: table.Row) -> None:
    with without(row.proof) as library:
        for test in row.tests:
            witnesses.fails(test, row.proof, library)
