"""The pages have sentences that are read once."""

from __future__ import annotations

import subprocess

import pytest

from tests.release.docs import english
from tests.support.child import ROOT

PAGES = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_once(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    paragraphs = list(english.of_page(text))
    assert [fault for part in paragraphs for fault in english.faults(part)] == []
    said = [*paragraphs, *english.cells(text)]
    assert [part for part in said if english.AVOIDED.search(part)] == []


def test_no_sentence_stands_twice() -> None:
    """A link leads to it instead; up to five words may stand again."""
    places: dict[str, list[str]] = {}
    for page in PAGES:
        for paragraph in english.of_page((ROOT / page).read_text(encoding="utf-8")):
            for sentence in english.sentences(paragraph):
                places.setdefault(sentence, []).append(page)
    twice = {
        sentence: pages
        for sentence, pages in places.items()
        if len(pages) > 1 and len(sentence.split()) > 5
    }
    assert twice == {}


def test_a_hidden_actor_and_a_long_sentence_are_found() -> None:
    hidden, long = "What is kept is said.", "Word" + " word" * english.MOST_WORDS + "."
    assert english.faults(f"The cache keeps it. {hidden} (It ends.) {long}") == [hidden, long]
    assert english.faults("What does it keep?") == []


def test_only_sentences_of_a_page_are_read() -> None:
    page = (
        "# What\n\nThe [cache](cache.md) acts.\n![What](what.png)\n\n    What is code\n\n"
        "| What | is a row |\n<!-- What -->\n- one\n  item\n1. another\n\n```\nWhat\n```\n"
    )
    assert list(english.of_page(page)) == ["The cache acts.", "one   item", "another"]
    assert list(english.cells(page)) == [" What ", " is a row "]
