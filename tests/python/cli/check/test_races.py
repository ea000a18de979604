"""`mgpu-rt check` reports races within a launch. Ordered accesses and atomic accesses are not
reported."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.python.cli.check.mutants.form import THREADS, built
from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import program
from tests.support.command import NO_FAULT

HERE = Path(__file__).parent

#: For each race in races.mlir: the kernel, the two accesses, and the kind of memory. The two
#: accesses of a race may occur in any order.
RACES = [
    ("no_barrier", {"memref.load %tile", "memref.store %x, %tile"}, "workgroup"),
    ("barrier_too_few", {"memref.load %tile", "memref.store %z, %tile"}, "workgroup"),
    ("histogram", {"memref.atomic_rmw", "memref.load %bins"}, "workgroup"),
    ("same_element", {"memref.store %x, %out[%zero]"}, "global"),
    ("sum_without_atomics", {"memref.load %out", "memref.store %sum"}, "global"),
    ("sum_without_atomics", {"memref.store %sum"}, "global"),
    ("neighbour", {"memref.load %out[%next]", "memref.store %x, %out[%i]"}, "global"),
    ("overlapping_bytes", {"memref.store %x, %out[%at]"}, "global"),
    ("scope_too_small", {"memref.store %value", "memref.load %data"}, "global"),
]


@functools.cache
def races() -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    """Runs races.mlir, and returns check's reports."""
    built = program(HERE / "races.mlir", lines=True)
    out = built.with_suffix(".json")
    done = check("--json", out, "--", built, **THREADS)
    return done, json.loads(out.read_text())["reports"]


def test_each_race_is_found_with_both_lines() -> None:
    text = (HERE / "races.mlir").read_text().splitlines()
    done, found = races()
    assert done.returncode == 1, done.stderr
    assert {report["kind"] for report in found} == {"race"}
    assert sorted(report["kernel"] for report in found) == sorted(kernel for kernel, *_ in RACES)
    for kernel, operations, memory in RACES:
        sides = [
            [text[int(side["line"].split(":")[1]) - 1] for side in (report, report["other"])]
            for report in found
            if (report["kernel"], report["memory"]) == (kernel, memory)
        ]
        assert any(
            all(any(each in line for line in lines) for each in operations)
            and all(any(each in line for each in operations) for line in lines)
            for lines in sides
        ), (kernel, sides)


#: Changes of races.mlir: its first kernel gets a second array, and LLVM merges the loads.
MERGED = {
    "%tile: memref<128xi32, #workgroup>)": (
        "%tile: memref<128xi32, #workgroup>, %more: memref<128xi32, #workgroup>)"
    ),
    "memref.store %x, %tile[%other] : memref<128xi32, #workgroup>\n": (
        "memref.store %x, %tile[%other] : memref<128xi32, #workgroup>\n"
        "      memref.store %x, %more[%other] : memref<128xi32, #workgroup>\n"
    ),
    "memref.store %y, %out": (
        "%z = memref.load %more[%thread] : memref<128xi32, #workgroup>\n"
        "      %sum = arith.addi %y, %z : i32\n      memref.store %sum, %out"
    ),
}


def test_a_merged_access_has_the_line_of_an_instruction_before_it(tmp_path: Path) -> None:
    text = (HERE / "races.mlir").read_text()
    for old, new in MERGED.items():
        assert old in text
        text = text.replace(old, new, 1)
    out = tmp_path / "reports"
    done = check("--json", out, "--", built(text, tmp_path), **THREADS)
    report = next(r for r in json.loads(out.read_text())["reports"] if r["kernel"] == "no_barrier")
    first, last = (
        next(number for number, line in enumerate(text.splitlines(), 1) if part in line)
        for part in ("%other = arith.subi", "gpu.return")
    )
    (merged,) = (side for side in (report, report["other"]) if "ds_read2" in side["instruction"])
    assert "line" not in merged and first <= int(merged["after"].rsplit(":", 1)[1]) < last
    assert f", after {merged['after']}: {merged['instruction']}" in done.stderr


def test_a_race_says_what_would_order_it() -> None:
    done, found = races()
    assert "a gpu.barrier between the accesses would, outside of any branch, so" in done.stderr
    assert "nothing orders workgroups of one launch" in done.stderr
    report = next(each for each in found if each["kernel"] == "scope_too_small")
    groups = [side["workgroup_x"] for side in (report, report["other"])]
    assert sorted(groups) == [0, 1] and report["allocation"]["bytes"] == 1024


@pytest.mark.parametrize("source", ["no_races.mlir", "atomics.mlir"])
def test_ordered_and_atomic_accesses_are_no_race(source: str) -> None:
    done = check("--", program(HERE / source), **THREADS)
    assert (done.returncode, done.stderr) == (0, NO_FAULT)
