"""The page contains the last results of `make stress-tests`."""

from __future__ import annotations

import pytest

from tests.support import stress


def test_the_page_says_what_is_on_record() -> None:
    if not stress.RECORD.exists():
        pytest.skip("no result on record yet: make stress-tests")
    page = stress.PAGE.read_text(encoding="utf-8")
    assert stress.held(page) == stress.sentences(stress.recorded(stress.RECORD))
