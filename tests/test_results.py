"""The README shows the figures of bench/results, and nothing else."""

from __future__ import annotations

import json
import re

import pytest

from bench import native, table

RESULTS = native.ROOT / "bench" / "results"
README = (native.ROOT / "README.md").read_text(encoding="utf-8")

#: <!-- table KIND FILE DEVICE --> the table <!-- end -->
SHOWN = re.findall(r"<!-- table (\S+) (\S+) (\S+) -->\n(.*?)\n<!-- end -->", README, re.DOTALL)


@pytest.mark.parametrize(
    ("kind", "file", "on", "text"), SHOWN, ids=[" ".join(s[:3]) for s in SHOWN]
)
def test_table_is_what_was_measured(kind: str, file: str, on: str, text: str) -> None:
    results = json.loads((native.ROOT / file).read_text(encoding="utf-8"))
    expected = table.TABLES[kind](results, on)
    assert text.strip() == expected, f"python -m bench table {kind} {file} {on}"


def test_there_is_a_table_and_a_plot() -> None:
    assert SHOWN
    assert re.search(r"!\[[^]]+\]\(bench/results/[^)]+\.(png|svg)\)", README)


def test_plots_shown_are_there() -> None:
    for name in re.findall(r"\((bench/results/[^)]+)\)", README):
        assert (native.ROOT / name).exists(), name


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_say_what_they_are_of(path) -> None:
    results = json.loads(path.read_text(encoding="utf-8"))
    assert path.name.startswith(results["date"][:10])
    for benchmark in results["benchmarks"].values():
        assert benchmark["on"] in path.stem
        assert results["devices"][benchmark["on"]]["words"] == benchmark["device"]
