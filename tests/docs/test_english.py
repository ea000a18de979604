"""The package's docstrings and the documents have sentences that are read once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.child import ROOT

MOST_WORDS = 25
#: Beginnings that hide who acts; a question may begin so.
HIDES = re.compile(r"(What|Who|Whoever|Of|But for|Where|That)\b(?!.*\?)")
SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`\"])")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def sentences(paragraphs: str) -> Iterator[str]:
    """The sentences of plain paragraphs; code and lists are none."""
    for paragraph in re.split(r"\n\s*\n", paragraphs):
        if not re.match(r"\s{4}|\s*[-*]\s", paragraph):
            yield from SENTENCE.split(" ".join(paragraph.split()))


def faults(text: str) -> list[str]:
    return [s for s in sentences(text) if HIDES.match(s) or len(s.split()) > MOST_WORDS]


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""


def test_docstrings_name_who_acts() -> None:
    package = ROOT / "mgpu_rt"
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted(package.rglob("*.py"))
        for text in docstrings(path)
        for fault in faults(text)
    ]
    assert found == []


def test_a_hidden_actor_and_a_long_sentence_are_found() -> None:
    hidden, long = "What is kept is said.", "word " * MOST_WORDS + "more."
    assert faults(f"The cache keeps it. {hidden}\n\n{long.capitalize()}") == [
        hidden,
        long.capitalize(),
    ]
    assert faults("What does it keep?") == []
