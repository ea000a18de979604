"""Explores all interleavings of three threads for each state table of shared/types.h, and detects
mutants of the transitions. tests/proofs/README.md lists the explored scenarios."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.child import ROOT
from tests.support.patience import HANG
from tests.support.suites import sampled
from tests.support.variants import explorer

RECORD = ROOT / "tests" / "proofs" / "README.md"


@dataclass(frozen=True)
class Record:
    """The numbers of threads and of states that the record lists for a scenario."""

    threads: int
    states: float
    states_of_two: float | None  # of a scenario whose three threads take long


def _recorded() -> dict[str, Record]:
    """Returns what the record lists, by the name of the scenario."""
    row = r"(?m)^\| ([a-z-]+) \|.*\| (\d) \| (\d+\.\d+) \|(?: (\d+\.\d) \|)?"
    return {
        name: Record(int(threads), float(millions) * 1e6, float(thousands or 0) * 1e3 or None)
        for name, threads, millions, thousands in re.findall(row, RECORD.read_text())
    }


RECORDED = _recorded()

#: Three threads take more than ten seconds of a core: `make check` plays two.
LONG = [name for name, record in RECORDED.items() if record.states_of_two]


def _states(arguments: str) -> int:
    command = [explorer(), *arguments.split()]
    found = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert found.returncode == 0, found.stdout + found.stderr
    counted = re.search(r": (\d+) states$", found.stdout, re.MULTILINE)
    assert counted, found.stdout
    return int(counted[1])


def _close_to(recorded: float | None) -> object:
    """Allows for memory addresses, which decide which words share a cache line. So the number of
    states varies slightly, and changes if two variables of a scenario come to lie in one line."""
    return pytest.approx(recorded, rel=0.2)


@pytest.mark.check
@pytest.mark.parametrize("scenario", LONG)
def test_every_state_of_two_threads_is_as_types_h_says(scenario: str) -> None:
    assert _states(f"{scenario} 1 1 0") == _close_to(RECORDED[scenario].states_of_two)


@pytest.mark.parametrize("scenario", sampled(RECORDED, set(RECORDED) - set(LONG)))
def test_all_that_the_record_lists_was_explored(scenario: str) -> None:
    record = RECORDED[scenario]
    assert _states(f"{scenario} 1 1 {record.threads - 2}") == _close_to(record.states)


def test_the_record_has_every_scenario() -> None:
    sources = (path.read_text() for path in Path(__file__).parent.glob("*.c"))
    named = re.findall(r'^SCENARIO\(\w+, "([a-z-]+)"', "".join(sources), re.MULTILINE)
    assert sorted(RECORDED) == sorted(named)
