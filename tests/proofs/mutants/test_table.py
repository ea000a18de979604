"""Each name in the code has a row and tests, and each row's name occurs in the code. A name adds
nothing to the code."""

from __future__ import annotations

import re
from collections import Counter

from tests.proofs.mutants import table
from tests.support.child import ROOT
from tests.support.patience import run_process

#: Each macro of csrc/runtime/proof.h and check.h, and its expansion in the library of the users.
EXPANDED = {
    "PROOF(name, f(x, y) && z)": "(f(x, y) && z)",
    "DOUBT(name, f(x, y) && z)": "(f(x, y) && z)",
    "PROOF_STEP(name, f(x, y))": "f(x, y)",
    "PROOF_VALUE(name, f(x, y), z)": "(f(x, y))",
    "CHECK(f(x, y))": "(void)0",
}

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


def test_names_of_proofs_add_no_word() -> None:
    text = "\n".join(('#include "proof.h"', '#include "check.h"', *EXPANDED))
    done = run_process(["cc", "-E", "-P", "-Icsrc/runtime", "-"], cwd=ROOT, input=text)
    assert done.stdout.splitlines() == list(EXPANDED.values())
