"""Reads the recordings that MGPU_RT_STATS and MGPU_RT_TRACE leave."""

from __future__ import annotations

import json
from pathlib import Path

from mgpu_rt import _record_json
from mgpu_rt._record import Recording


def read(path: str | Path) -> Recording:
    return Recording(Path(path).read_bytes())


def stats(path: str | Path) -> dict:
    """Returns the statistics in a recording."""
    return _record_json.statistics(read(path))


def trace(path: str | Path) -> dict:
    """Returns the trace in a recording, as a viewer gets it."""
    return json.loads(_record_json.trace(read(path)))


def results(path: str | Path, function: str) -> list[str | None]:
    """Returns the result that a trace states for each call of a function of the library."""
    calls = [event for event in trace(path)["traceEvents"] if event.get("cat") == "program"]
    return [call["args"].get("result") for call in calls if call["name"] == function]
