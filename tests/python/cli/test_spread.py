"""`mgpu-rt compare` shows no ratio of times that do not compare, and no gain within the spread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgpu_rt._cli.stats.runs import sentence
from tests.support import recorded
from tests.support.command import invoke


@pytest.mark.parametrize(
    ("before", "after", "ending"),
    [
        ([2.0, 2.2, 2.1, 2.1], [1.0, 1.1, 1.05, 1.05], "2.00 times as fast"),
        ([1.0, 1.1, 1.05, 1.05], [2.0, 2.2, 2.1, 2.1], "2.00 times as long"),
        ([1.0, 3.0, 2.0, 2.0], [0.9, 1.1, 1.0, 1.0], "the ranges overlap, so no gain is shown"),
        ([2.0, 2.2, 2.1], [1.0, 1.1, 1.05], "too few runs to show a gain (--repeat 5)"),
    ],
)
def test_a_gain_is_named_only_beyond_the_spread(
    before: list[float], after: list[float], ending: str
) -> None:
    assert sentence(before, after).endswith(ending)


@pytest.mark.parametrize(
    "changes",
    [
        {"graphs": {"built": 1, "refused": 0, "launches": 999, "nodes": 2997, "plain": 1}},
        {"failed": [{"function": "hipFree", "error": "hipErrorInvalidValue", "calls": 3}]},
    ],
)
def test_totals_that_do_not_compare_have_no_ratio(tmp_path: Path, changes: dict) -> None:
    """A graph's launch stands for calls that are not counted; a failed call does no work."""
    runs = [recorded.stock(), recorded.statistics(**changes)]
    paths = [tmp_path / "stock.json", tmp_path / "ours.json"]
    for path, run in zip(paths, runs, strict=True):
        path.write_text(json.dumps(run))
    said = invoke("compare", *map(str, paths)).stdout.splitlines()
    totals = [line.split() for line in said if line.startswith("total")]
    assert totals and all(line[-1] == "–" for line in totals)
    page = invoke("compare", "--report", "-", *map(str, paths)).stdout
    assert "times as fast" not in page and "times do not compare" in page.replace("totals", "times")
