"""Docstrings of the benchmarks and of the tests keep to the rules of the package's."""

from __future__ import annotations

import pytest

from tests.docs import english
from tests.docs.test_english import docstrings
from tests.support.child import ROOT


@pytest.mark.parametrize("folder", ["bench", "tests"])
def test_docstrings_name_who_acts(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in docstrings(path)
        for paragraph in english.of_docstring(text)
        for fault in english.faults(paragraph)
    ]
    assert found == []
