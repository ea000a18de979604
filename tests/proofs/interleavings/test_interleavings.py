"""Explores all interleavings of three threads for each state table of shared/types.h, and detects
mutants of the transitions. tests/proofs/README.md lists the explored scenarios."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.child import ROOT
from tests.support.patience import HANG
from tests.support.suites import sampled
from tests.support.variants import explorer

RECORD = ROOT / "tests" / "proofs" / "README.md"

#: Three threads take more than ten seconds of a core: `make check` runs two.
LONG = (
    *("blocks-asked", "blocks-graph", "events", "modules", "modules-reset", "staging", "streams"),
    *("streams-reported", "streams-reset", "waits-word", "registrations-held"),
)


def _recorded() -> dict[str, tuple[int, float]]:
    """Returns, for each scenario, the number of threads and the number of states in millions."""
    rows = re.findall(r"(?m)^\| ([a-z-]+) \|.*\| (\d) \| (\d+\.\d+) \|$", RECORD.read_text())
    return {name: (int(threads), float(millions)) for name, threads, millions in rows}


RECORDED = _recorded()


def _states(arguments: str) -> int:
    command = [explorer(), *arguments.split()]
    found = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert found.returncode == 0, found.stdout + found.stderr
    counted = re.search(r": (\d+) states$", found.stdout, re.MULTILINE)
    assert counted, found.stdout
    return int(counted[1])


@pytest.mark.check
@pytest.mark.parametrize("scenario", LONG)
def test_every_state_of_two_threads_is_as_types_h_says(scenario: str) -> None:
    assert _states(f"{scenario} 1 1 0") > 500


@pytest.mark.parametrize("scenario", sampled(RECORDED, set(RECORDED) - set(LONG)))
def test_all_that_the_record_lists_was_explored(scenario: str) -> None:
    threads, millions = RECORDED[scenario]
    # Memory addresses decide which words share a cache line. So the number of states varies
    # slightly, and changes if two variables of a scenario come to lie in one line.
    states = _states(f"{scenario} 1 1 {threads - 2}") / 1e6
    assert states == pytest.approx(millions, rel=0.2)


def test_the_record_has_every_scenario() -> None:
    sources = (path.read_text() for path in Path(__file__).parent.glob("*.c"))
    named = re.findall(r'^SCENARIO\(\w+, "([a-z-]+)"', "".join(sources), re.MULTILINE)
    assert sorted(RECORDED) == sorted(named)
