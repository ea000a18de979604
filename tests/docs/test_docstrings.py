"""Docstrings of the benchmarks and of the tests keep to the rules of the package's, as do names."""

from __future__ import annotations

import re

import pytest

from tests.docs import english
from tests.docs.test_english import docstrings
from tests.support.child import ROOT

#: A test's name, without the number of its trap.
NAME = re.compile(r"^def test_(?:\d\d_)?(\w+)\(", re.MULTILINE)


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


def test_names_of_tests_name_who_acts() -> None:
    names = [
        (path, name)
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in NAME.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(names) > 1000
    found = [
        f"{path.relative_to(ROOT)}: test_{name}"
        for path, name in names
        if english.HIDES.match(name.replace("_", " ").capitalize())
    ]
    assert found == []
