"""The figures of the pages' prose are those of bench/results."""

from __future__ import annotations

import re

import pytest

from tests.release.docs.claims import CLAIMS, FIGURE, GRAPHS, README, Claim
from tests.release.docs.measured import newest
from tests.support.child import ROOT


def test_the_tables_show_the_newest_results() -> None:
    results = ROOT.glob("bench/results/*.json")
    assert ROOT / newest() == max(results)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:50])
def test_a_claim_shows_the_figures_of_the_results(claim: Claim) -> None:
    """README.md shows the least and the largest ratio over models, variants and programs."""
    found = claim.found((ROOT / claim.page).read_text(encoding="utf-8"))
    assert list(found.groups()) == claim.figures(), "run: python -m tests.release.docs"


def test_a_page_gets_the_figures_again() -> None:
    claim = next(claim for claim in CLAIMS if claim.page == GRAPHS)
    page = (ROOT / GRAPHS).read_text(encoding="utf-8")
    begin, end = claim.found(page).span()
    old = re.sub(FIGURE, "1,000", page[begin:end])
    assert claim.refreshed(page[:begin] + old + page[end:]) == page


#: Matches a time, a ratio or a share.
MEASURED = re.compile(
    rf"{FIGURE}\s(?:ns|µs|ms)\b|\d\.\d+\stimes|{FIGURE}\sto\s{FIGURE}\stimes|\d\s?%"
)
#: Matches words that tell where the figures of a paragraph come from.
SOURCE = re.compile(r"2026-\d\d-\d\d|from outside|arlier versions|tests/|figures\.md#")
#: Matches code and tables. Tables of figures have a date above.
NO_PROSE = re.compile(r"```.*?```|^(?:    |\|)[^\n]*$", re.DOTALL | re.MULTILINE)
PAGES = [README, *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_that_no_result_holds_has_a_date_or_a_source(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for claim in CLAIMS:
        if claim.page == page:
            begin, end = claim.found(text).span()
            text = text[:begin] + re.sub(r"[^|\n]", " ", text[begin:end]) + text[end:]
    parts = re.split(r"\n\s*\n|\n[-*] ", NO_PROSE.sub("", text))
    assert [part for part in parts if MEASURED.search(part) and not SOURCE.search(part)] == []
