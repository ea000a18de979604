"""Runs the sums on hipSPARSE, and keeps what became of each in record.json: make check-sparse."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.sparse.record import RECORD

HERE = Path(__file__).parent


class _Outcomes:
    """What became of each test that was run."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.of[report.nodeid.partition("tests/sparse/")[2]] = report.outcome


def main() -> int:
    outcomes = _Outcomes()
    files = [str(HERE / name) for name in ("test_sums.py", "test_lowered.py")]
    failed = pytest.main(["-q", "-n0", *files], plugins=[outcomes])
    RECORD.write_text(json.dumps(dict(sorted(outcomes.of.items())), indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
