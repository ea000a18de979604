"""make check-sparse has run since its tests last changed, and all tests passed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.runtime.sparse.record import NEWER, load

HERE = Path(__file__).parent


def test_each_sum_was_right_when_it_was_run_last() -> None:
    outcomes = load()
    assert set(outcomes.values()) == {"passed"}
    recorded = {name.partition("[")[0] for name in outcomes if not name.startswith(NEWER)}
    written = {
        f"{file}::{name}"
        for file in ("test_sums.py", "test_lowered.py")
        for name in re.findall(r"^def (test_\w+)", (HERE / file).read_text(), re.MULTILINE)
    }
    assert recorded == written
    assert any(name.startswith(NEWER) for name in outcomes)
