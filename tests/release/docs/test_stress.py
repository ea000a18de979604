"""The stress of the tests: it finds what fails under load, and its last result is on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import stress

LIGHT = stress.Load("other work alone")

#: Passes in every other run.
TESTS = """
from pathlib import Path

def test_one():
    mark = Path(__file__).with_name("mark")
    there = mark.exists()
    mark.unlink() if there else mark.touch()
    assert there

def test_two():
    pass
"""


@pytest.mark.check
def test_failures_by_chance_are_counted_and_their_logs_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stress, "OUT", tmp_path / "out")
    monkeypatch.setattr(stress, "LOADS", (LIGHT,))
    (tmp_path / "test_turns.py").write_text(TESTS)
    runs = list(stress.stress(2, "test", [str(tmp_path / "test_turns.py")], 1))
    failed = [name.rpartition("::")[2] for one in runs for name in one.failed]
    assert failed == ["test_one"]
    assert [one.tests for one in runs] == [2, 2]
    assert [path.name for path in tmp_path.glob("out/*.txt")] == ["run-0.txt"]


def test_a_run_that_reports_nothing_has_failed(tmp_path: Path) -> None:
    assert stress.read(tmp_path / "nothing.xml") == (0, ["the run itself"])


def one_run(date: str, *failed: str, target: str = "test") -> stress.Run:
    return stress.Run(target, date, "abc", 2, 1, LIGHT.name, 400, 4000, list(failed))


def test_runs_are_counted_from_the_last_failure(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n{stress.BEGIN}{stress.END}\nAfter.\n")
    runs = [one_run("2026-01-01"), one_run("2026-01-02", "a::b"), one_run("2026-01-03")]
    runs.append(one_run("2026-01-04", target="check"))
    stress.record(runs, tmp_path / "runs.json")
    assert stress.recorded(tmp_path / "runs.json") == runs
    stress.say(runs, page)
    assert page.read_text().splitlines()[2:4] == [
        "Runs of `make test` that have passed since the last failure: 1, the last on 2026-01-03, "
        "of 4,000 tests on 2 cores. The last failure, on 2026-01-02: a::b.",
        "Runs of `make check` that have passed since the last failure: 1, the last on 2026-01-04, "
        "of 4,000 tests on 2 cores.",
    ]


def test_the_page_says_what_is_on_record() -> None:
    if not stress.RECORD.exists():
        pytest.skip("no result on record yet: make stress-tests")
    page = stress.PAGE.read_text(encoding="utf-8")
    assert stress.held(page) == stress.sentences(stress.recorded(stress.RECORD))
