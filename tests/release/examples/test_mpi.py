"""Runs real ranks of Open MPI. Each process has two emulated devices."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.release.examples.conftest import EXAMPLES, Run, shown
from tests.runtime.driver.test_local_rank import LAUNCHERS
from tests.support.child import ROOT

pytestmark = pytest.mark.check  # built against an installed library

NUMBERS = 60000
TOTAL = NUMBERS * (NUMBERS + 1) * (2 * NUMBERS + 1) // 6
SHARED = "mgpu_rt: local rank 2 uses device 0 of the 2 that it sees, and shares it with another "
TWO_DEVICES = {"MGPU_RT_SOFTGPU": "gfx90a,gfx90a"}


def part(rank: int, ranks: int) -> int:
    """Returns the sum of the squares of a rank's numbers."""
    return sum(n * n for n in range(1 + NUMBERS * rank // ranks, 1 + NUMBERS * (rank + 1) // ranks))


def test_three_ranks_on_two_devices(run: Run) -> None:
    """The output equals the output in docs/mpi.md: the table, and one line about a shared
    device."""
    result = run("sh", "-c", shown("mpi"))
    head, *rows, end = result.stdout.splitlines()
    assert head.split() == ["rank", "device", "PCI", "bus", "sum", "us", "a", "call"]
    cells = [row.split() for row in rows]
    assert [(int(rank), int(device)) for rank, device, *_ in cells] == [(0, 0), (1, 1), (2, 0)]
    assert [int(row[3]) for row in cells] == [part(rank, 3) for rank in range(3)]
    assert all(float(row[4]) > 0 for row in cells)
    assert cells[0][2] == cells[2][2] != cells[1][2]
    assert end == f"sum of the squares of 1 to {NUMBERS}: {TOTAL}, as it should be"
    assert result.stderr.count("mgpu_rt: ") == result.stderr.count(SHARED) == 1


def test_the_script_for_two_gpus_runs(run: Run, tmp_path: Path) -> None:
    """With 1, 2 and 3 ranks, AMD's HIP on emulated devices takes the place of NVIDIA's driver."""
    script, folder = EXAMPLES / "mpi" / "two_gpus.sh", tmp_path / "packed"
    run("sh", script, "pack", FOLDER=str(folder), CHIP="gfx90a")
    shutil.copy(softgpu.hip(), folder / "libamdhip64.so.5")
    below = {"LD_LIBRARY_PATH": str(ROOT / "build" / "softgpu"), **TWO_DEVICES}
    result = run("sh", script, FOLDER=str(folder), **below)
    for ranks, line in enumerate(result.stdout.splitlines(), start=1):
        told = json.loads(line)
        assert told["right"] and told["sum"] == TOTAL
        assert [row["rank"] for row in told["ranks"]] == list(range(ranks))
        assert [row["device"] for row in told["ranks"]] == [rank % 2 for rank in range(ranks)]
        assert [row["sum"] for row in told["ranks"]] == [part(rank, ranks) for rank in range(ranks)]
    assert ranks == 3
    assert result.stderr.count(SHARED) == 1


def test_the_page_has_the_table_of_launchers() -> None:
    """docs/mpi.md lists the variables of csrc/runtime/process/launchers.def, in the order of that
    file."""
    page = (ROOT / "docs" / "mpi.md").read_text(encoding="utf-8")
    rows = (f"| `{name}` | {launcher} |" for name, launcher in LAUNCHERS.items())
    assert "\n".join(rows) in page
