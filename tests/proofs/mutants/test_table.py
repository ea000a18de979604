"""Each name in the code has a row and tests, and each row's name occurs in the code."""

from __future__ import annotations

import re
from collections import Counter

from tests.proofs.mutants import table
from tests.support.child import ROOT

ROWS = table.rows()


def test_each_name_in_the_code_has_a_row() -> None:
    assert set(table.in_code()) - {row.proof for row in ROWS} == set()


def test_each_row_is_in_the_code() -> None:
    assert {row.proof for row in ROWS} - set(table.in_code()) == set()


def test_a_name_has_one_row() -> None:
    assert [name for name, rows in Counter(row.proof for row in ROWS).items() if rows > 1] == []


def test_each_row_has_tests_that_are_there() -> None:
    assert [row.proof for row in ROWS if not row.tests] == []
    named = {test.name for row in ROWS for test in row.tests if "::" in test.name}
    assert [name for name in sorted(named) if not _is_there(name)] == []


def _is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / "tests" / file
    return path.exists() and bool(
        re.search(rf"^def {name.partition('[')[0]}\(", path.read_text(), re.MULTILINE)
    )
