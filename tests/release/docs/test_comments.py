"""The comments of the C sources follow the rules of english.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.release.docs import english
from tests.support.child import ROOT

#: Matches a string, a character or a comment; a string or a character may look like a comment.
TOKEN = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|/\*(.*?)\*/", re.DOTALL)
#: Matches lines that are no sentences: table columns, lists, code and headings.
NO_SENTENCES = re.compile(r"\S {2,}\S|^(?:\s{4}|\s*[-*] |----)", re.MULTILINE)
FILES = [
    str(path.relative_to(ROOT))
    for pattern in ("*.c", "*.h", "*.def")
    for lot in ("csrc", "softgpu/src")
    for path in sorted((ROOT / lot).rglob(pattern))
]


def comments(source: str) -> Iterator[str]:
    """Yields the plain paragraphs of a source's comments, without tables, lists and code."""
    for found in TOKEN.finditer(source):
        text = re.sub(r"^[ \t]*\*? ?", "", found[1] or "", flags=re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            if paragraph and not NO_SENTENCES.search(paragraph):
                yield paragraph


#: Headers must describe each function.
HEADERS = [
    str(path.relative_to(ROOT))
    for lot in ("csrc", "softgpu", "bench", "tests")
    for path in sorted((ROOT / lot).rglob("*.h"))
]
#: A comment above a function, and the function's name.
FUNCTION = re.compile(
    r"^/\*((?:(?!\*/).)*)\*/\n"
    r"(?!typedef)[A-Za-z_][\w \t*]*?[\s*](?!__)(\w+)\s*\([^;{}#=]*?\)[^;{}()]*[;{]",
    re.DOTALL | re.MULTILINE,
)
#: Matches a comment above a function that returns nothing; the comment may begin with "Returns
#: once".
NOTHING = re.compile(
    r"^/\*((?:(?!\*/).)*)\*/\n(?:static |inline |extern )*void (\w+)\(", re.DOTALL | re.MULTILINE
)
#: A capitalised word that ends like a verb in the third person, except nouns of the code.
NOUNS = "This|Its|As|Bytes|Threads|Streams|Blocks|Events|Modules"
VERB = re.compile(rf"(?!(?:{NOUNS})\b)[A-Z][a-z]+s\b(?!')")


@pytest.mark.parametrize("file", FILES)
def test_a_comment_is_read_once(file: str) -> None:
    paragraphs = list(comments((ROOT / file).read_text(encoding="utf-8")))
    assert [fault for part in paragraphs for fault in english.faults(part)] == []
    assert [part for part in paragraphs if english.AVOIDED.search(part)] == []
    assert [fault for part in paragraphs for fault in english.unclear(part)] == []


@pytest.mark.parametrize("file", HEADERS)
def test_a_functions_comment_begins_with_a_verb(file: str) -> None:
    """The comment starts with a verb in the third person: returns, adds, drops."""
    found = [
        (name, " ".join(text.split())[:60])
        for text, name in FUNCTION.findall((ROOT / file).read_text(encoding="utf-8"))
        if "----" not in text and not VERB.match(text.strip())
    ]
    assert found == []


@pytest.mark.parametrize("file", FILES)
def test_a_function_without_a_result_does_not_say_that_it_returns(file: str) -> None:
    found = [
        name
        for text, name in NOTHING.findall((ROOT / file).read_text(encoding="utf-8"))
        if re.match(r"\s*Returns (?!once|at once|after)", text)
    ]
    assert found == []
