"""The allocation traces in bench/traces match the current programs."""

from __future__ import annotations

import pytest

from bench.measure import replay


@pytest.mark.parametrize("program", replay.PROGRAMS)
def test_the_trace_has_what_the_program_asks_for(program: str) -> None:
    recorded = replay.record(program)
    kept = (replay.TRACES / f"{program}.trace").read_text().splitlines()
    assert kept[1:] == recorded
    allocated = [line.split()[1] for line in recorded if line[0] == "a"]
    freed = [line.split()[1] for line in recorded if line[0] == "f"]
    assert sorted(allocated) == sorted(freed)
    assert recorded[-1] == "s"
