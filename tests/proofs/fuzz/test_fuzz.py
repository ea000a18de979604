"""The fuzzers' README.md shows the figures of the last run. `make fuzz` runs the fuzzers."""

from __future__ import annotations

import re
from datetime import datetime

from bench import records
from tests.proofs.fuzz import report, seeds

RESULTS = records.load(report.RESULTS)
README = report.README.read_text(encoding="utf-8")


def test_the_table_shows_the_last_runs() -> None:
    assert report.refreshed(README) == README, "run: make fuzz FUZZ_SECONDS=60"


def test_each_reader_had_its_time_and_nothing_was_found() -> None:
    assert datetime.fromisoformat(RESULTS["date"]).year >= 2026
    assert RESULTS["seconds"] >= report.ON_RECORD
    assert {run["reader"] for run in RESULTS["readers"]} == set(seeds.SEEDS)
    for run in RESULTS["readers"]:
        assert run["findings"] == 0, run
        assert run["runs"] > 100_000, run
        assert run["edges"] > 20, run


def test_each_reader_is_built_and_explained() -> None:
    recipe = (report.HERE / "fuzz.mk").read_text(encoding="utf-8")
    readers = re.search(r"^FUZZ_READERS := (.*)$", recipe, re.MULTILINE)
    assert readers and set(readers[1].split()) == set(seeds.SEEDS)
    for reader in seeds.SEEDS:
        assert (report.HERE / f"{reader}.c").exists()
        assert f"\n| {reader} | " in README
