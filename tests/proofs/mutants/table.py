"""Finds the names of proofs in the code and in tests/proofs/proofs.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.child import ROOT

PAGE = ROOT / "tests" / "proofs" / "proofs.md"
#: matches the macros of csrc/runtime/proof.h
NAMED = re.compile(r"\b(?:PROOF|DOUBT|PROOF_STEP|PROOF_VALUE)\(\s*\"?(\w+)\b")
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
#: A comment such as `# proof: name` marks the next line of Python as a proof. After the name, the
#: comment may contain `, else` and quoted code. Without the proof, the quoted code replaces the
#: marked line. If the comment contains no quoted code, `pass` replaces the marked line.
MARK = re.compile(r"^ *# proof: (\w+)(?:, else `(.+)`)?$")
TEST = re.compile(r"`([^`]+)`( exclusive)?")
#: A heading that names a shortcut. The table row below the heading contains the shortcut's proof,
#: and the question that the library asks HIP.
SHORTCUT = re.compile(r"^## (.+)\n\n\| what proves it \|.*\n\|---.*\n\| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Test:
    """A test that fails without a proof. `name` is a file of tests/ with a function, or names
    another kind of witness."""

    name: str
    exclusive: bool


@dataclass(frozen=True)
class Row:
    """A row of the table in tests/proofs/proofs.md."""

    proof: str
    proves: str
    without: str
    tests: tuple[Test, ...]


def sections() -> dict[str, list[Row]]:
    """Returns the table's rows, grouped by heading."""
    _, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.partition("\n")[0]: list(_rows(part)) for part in parts}


def _rows(text: str) -> Iterator[Row]:
    for proof, proves, without, tests in ROW.findall(text):
        found = tuple(Test(name, bool(word)) for name, word in TEST.findall(tests))
        yield Row(proof, proves, without, found)


def rows() -> list[Row]:
    return [row for part in sections().values() for row in part]


def shortcuts() -> Iterator[str]:
    """Returns the rows of docs/rule.md; each row contains a shortcut, the proof, and the question
    that the library asks HIP."""
    for heading, cells in SHORTCUT.findall(PAGE.read_text(encoding="utf-8")):
        yield f"| {heading[0].lower()}{heading[1:]} | {cells} |\n"


def in_code() -> dict[str, list[str]]:
    """For each name of a proof, returns the files that contain the name."""
    found: dict[str, list[str]] = {}
    for path in sorted((*(ROOT / "csrc").rglob("*.[ch]"), *(ROOT / "mgpu_rt").rglob("*.py"))):
        if path.name != "proof.h":
            text = path.read_text(encoding="utf-8")
            marks = [mark[1] for mark in map(MARK.match, text.splitlines()) if mark]
            for name in (*NAMED.findall(text), *marks):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found
