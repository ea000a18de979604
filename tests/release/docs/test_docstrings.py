"""Docstrings, comments and names of tests follow the rules of English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.release.docs import english
from tests.support.child import ROOT

FOLDERS = ("bench", "csrc", "examples", "mgpu_rt", "softgpu", "tests")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
#: A line that contains only a comment.
COMMENT = re.compile(r"\s*#:? (?!type:|noqa)(.*)")
#: Matches the name of a test, without the number of the test's trap.
NAME = re.compile(r"^def test_(?:\d\d_)?(\w+)\(", re.MULTILINE)


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""


def comments(text: str) -> Iterator[str]:
    lines = map(COMMENT.match, text.splitlines())
    for is_comment, block in groupby(lines, bool):
        if is_comment:
            yield " ".join(line[1] for line in block if line)


def paragraphs(path: Path) -> Iterator[str]:
    for text in docstrings(path):
        yield from english.of_docstring(text)
    yield from comments(path.read_text(encoding="utf-8"))


def faults(paragraph: str) -> list[str]:
    avoided = [said for said in english.sentences(paragraph) if english.AVOIDED.search(said)]
    return [*english.faults(paragraph), *avoided, *english.unclear(paragraph)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_comments_are_read_once(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for paragraph in paragraphs(path)
        for fault in faults(paragraph)
    ]
    assert found == []


def test_a_class_or_a_function_without_a_result_does_not_say_that_it_returns() -> None:
    """The docstring of a class, or of a function that returns None, must not begin with "Returns"
    or "Yields"."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                nothing = isinstance(node, ast.ClassDef) or (
                    isinstance(node, ast.FunctionDef)
                    and node.returns is not None
                    and ast.unparse(node.returns) == "None"
                )
                if nothing and (ast.get_docstring(node) or "").startswith(("Returns", "Yields")):
                    found.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert found == []


def test_names_of_tests_name_who_acts() -> None:
    names = [
        (path, name)
        for lot in ("tests", "softgpu")
        for path in (ROOT / lot).rglob("test_*.py")
        for name in NAME.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(names) > 1000
    found = [
        f"{path.relative_to(ROOT)}: test_{name}"
        for path, name in names
        if english.HIDES.match(name.replace("_", " ").capitalize())
    ]
    assert found == []
