"""The results of the last run of make check-sparse."""

from __future__ import annotations

from bench import records

NEWER = "7.2.4"  # the release on which the sums run beside the machine's own
RECORD = records.SUITES / "sparse.json"


def load() -> dict[str, str]:
    """Returns the outcome of each test, by its name."""
    return records.load(RECORD)
