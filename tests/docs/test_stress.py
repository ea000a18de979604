"""The stress of the tests: it finds what fails under load, and its last result is on record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import stress

LIGHT = stress.Load("one busy process", spinning=1)

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


def test_what_fails_by_chance_is_counted_and_its_log_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stress, "OUT", tmp_path / "out")
    monkeypatch.setattr(stress, "LOADS", (LIGHT,))
    (tmp_path / "test_turns.py").write_text(TESTS)
    result = stress.stress(2, [str(tmp_path / "test_turns.py")], 1)
    assert [name.rpartition("::")[2] for name in result["failures"]] == ["test_one"]
    assert list(result["failures"].values()) == [1]
    assert (result["runs"], result["tests"]) == (2, 2)
    assert [path.name for path in tmp_path.glob("out/*.txt")] == ["run-0.txt"]


def test_a_run_that_reports_nothing_has_failed(tmp_path: Path) -> None:
    assert stress.read(tmp_path / "nothing.xml").failed == ("the run itself",)


def test_the_record_is_what_the_page_says_and_has_no_failure() -> None:
    if not stress.RECORD.exists():
        pytest.skip("no result on record yet: make stress-tests")
    result = json.loads(stress.RECORD.read_text(encoding="utf-8"))
    assert stress.held(stress.PAGE.read_text(encoding="utf-8")) == stress.sentence(result)
    assert result["failures"] == {}
