"""The documents show the figures of bench/results, and no others."""

from __future__ import annotations

import json

import pytest

from bench.setup import native
from bench.show import table

RESULTS = native.ROOT / "bench" / "results"


@pytest.mark.parametrize("name", table.SHOWN_IN)
def test_tables_show_the_results(name: str) -> None:
    text = (native.ROOT / name).read_text(encoding="utf-8")
    assert table.refreshed(text, native.ROOT) == text, "run: python -m bench tables"


def test_only_pictures_that_a_page_shows_are_kept() -> None:
    pages = [native.ROOT / "README.md", *(native.ROOT / "docs").glob("**/*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    others = [path.name for path in RESULTS.iterdir() if path.suffix != ".json"]
    assert [name for name in others if f"bench/results/{name}" not in text] == []


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_name_their_device_and_date(path) -> None:
    results = json.loads(path.read_text(encoding="utf-8"))
    assert path.name.startswith(results["date"][:10])
    for benchmark in results["benchmarks"].values():
        assert benchmark["on"] in path.stem
        assert results["devices"][benchmark["on"]]["title"] == benchmark["device"]
