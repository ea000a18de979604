"""The figures of the pages' prose are those of bench/results."""

from __future__ import annotations

import re

import pytest

from tests.release.docs.claims import CLAIMS, FIGURE, GRAPHS, Claim
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
