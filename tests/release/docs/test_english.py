"""The pages follow the rules of english.py."""

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
    assert [fault for part in paragraphs for fault in english.unclear(part)] == []
    assert [part for part in said if english.STILTED.search(part)] == []


def test_no_sentence_stands_twice() -> None:
    """In place of a repeated sentence, a page links to the page that contains the sentence. Only
    sentences of up to five words may be repeated."""
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
