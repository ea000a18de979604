"""The fuzzers' figures: what is shown is what was run. `make fuzz` runs them."""

from __future__ import annotations

import re
from datetime import datetime

from bench import records
from tests.proofs.fuzz import report, seeds

RESULTS = records.load(report.RESULTS)
README = report.README.read_text(encoding="utf-8")


def test_the_table_shows_the_last_runs() -> None:
    assert report.refreshed(README) == README, "run: make fuzz FUZZ_SECONDS=600"


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


def test_the_output_of_libfuzzer_is_understood() -> None:
    said = (
        "#2\tINITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 30Mb\n"
        "#4096\tpulse  cov: 267 ft: 743 corp: 282/90Kb lim: 32768 exec/s: 2048 rss: 41Mb\n"
        "stat::number_of_executed_units: 347098\n"
    )
    assert report.parse("image", said, 0) == report.Run("image", 347098, 267, 743, 282, 0)
    assert report.parse("image", "", 77) == report.Run("image", 0, 0, 0, 0, 1)
