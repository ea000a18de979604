"""The matrix of tested releases, stored as JSON and shown in docs/record/tested.md."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench import records
from softgpu.tests.amd import rocrand, rocrtst
from softgpu.tests.csmith import results as csmith
from tests.devices.rocm.releases import RELEASES, Release
from tests.devices.rocm.suites import SUITES, Suite

ROOT = Path(__file__).resolve().parents[3]
RESULTS = records.SUITES / "rocm.json"
DOCUMENT = ROOT / "docs" / "record" / "tested.md"

Outcomes = Mapping[str, tuple[str, str]]  # maps a test to (passed, failed or skipped; reason)


def load() -> dict:
    return records.load(RESULTS)


def row(release: Release, suite: Suite, abi: int, outcomes: Outcomes) -> dict:
    """Returns the numbers of tests that passed, failed and were skipped, with the reasons."""
    count = Counter(outcome for outcome, _ in outcomes.values())
    skipped = Counter(why for outcome, why in outcomes.values() if outcome == "skipped")
    return {
        "hip": release.hip,
        "suite": suite.name,
        "chip": suite.chip,
        "abi": abi,
        "passed": count["passed"],
        "failed": count["failed"],
        "skipped": {why.removeprefix("Skipped: "): skipped[why] for why in sorted(skipped)},
        "failures": sorted(test for test, (outcome, _) in outcomes.items() if outcome == "failed"),
    }


def keep(new: dict) -> None:
    """Stores a row in place of the older row of the suite, release, chip and code object."""
    results = load() if RESULTS.exists() else {"rows": []}
    kept = [old for old in results["rows"] if _key(old) != _key(new)]
    results["rows"] = sorted([*kept, new], key=_key)
    results["date"] = datetime.date.today().isoformat()
    records.save(results, RESULTS)


def _key(row: Mapping) -> tuple:
    """Returns the key by which the table sorts a row, in the order of SUITES."""
    names = [suite.name for suite in SUITES]
    return (names.index(row["suite"]), row["chip"], row["abi"], row["hip"])


def document(results: Mapping) -> str:
    """docs/record/tested.md."""
    parts = [_INTRODUCTION.format(date=results["date"]), _releases()]
    parts += [_table(results)]
    parts += [rocrtst.section(rocrtst.load()), rocrand.section(rocrand.load())]
    parts += [csmith.section(csmith.load())]
    return "\n".join(parts)


def _releases() -> str:
    lines = ["| HIP | ROCr | Debian | takes the driver from | devices | code objects |"]
    lines += ["|---|---|---|---|---|---|"]
    for release in RELEASES:
        lines.append(
            f"| {release.hip} | {release.rocr} | {release.suites[-1]} | `{release.seam}` |"
            f" {', '.join(release.chips)} | {', '.join(str(a // 100) for a in release.abis)} |"
        )
    return "\n".join(lines) + "\n"


def _table(results: Mapping) -> str:
    """Returns a table. Each row stands for a suite, a device and a code object version, and each
    column for a release."""
    cells: dict[tuple, dict[str, str]] = {}
    reasons: dict[str, int] = {}
    for row in results["rows"]:
        cells.setdefault(_key(row)[:-1], {})[row["hip"]] = _counts(row, reasons)
    releases = [release.hip for release in RELEASES]
    lines = [
        "## Passed, failed, skipped\n",
        "Each number counts the tests that passed. If tests failed or were skipped, their numbers"
        "\nfollow, with the reason in brackets. A row counts the programs of all LLVM releases.\n",
        f"| suite | device | code object | {' | '.join(f'HIP {hip}' for hip in releases)} |",
        "|---|---|---|" + "---|" * len(releases),
    ]
    for (suite, chip, abi), of in cells.items():
        counts = " | ".join(of.get(hip, "–") for hip in releases)
        lines.append(f"| {SUITES[suite].name} | {chip or 'gfx90a'} | v{abi // 100} | {counts} |")
    lines += ["\nThe reasons:\n", *(f"{number}. {why}" for why, number in reasons.items())]
    lines += [
        f"\nFailed with HIP {row['hip']}: `{test}`"
        for row in results["rows"]
        for test in row["failures"]
    ]
    return "\n".join(lines) + "\n"


def _counts(row: Mapping, reasons: dict[str, int]) -> str:
    """Formats the numbers of a row. Each reason for skipping tests has a number, which is the same
    in all rows."""
    failed = [f"**{row['failed']} failed**"] if row["failed"] else []
    skipped = [
        f"{count} ({reasons.setdefault(why, len(reasons) + 1)})"
        for why, count in row["skipped"].items()
    ]
    words = [str(row["passed"]), *failed]
    return ", ".join([*words, f"skipped {', '.join(skipped)}"] if skipped else words)


_INTRODUCTION = """# What was tested on what

`make check-rocm` runs the tests of the emulated device ([softgpu](../../softgpu/README.md)) on
releases of AMD's HIP as Debian has them, and writes this page from bench/results/suites/rocm.json
({date}). `make test` runs HIP 5.2.3, which is Debian 12's. No AMD GPU was measured. A person runs
the suites marked `gpu` on an NVIDIA H100 and, last on 2026-11-30, on an H200 (driver 580), through
[csrc/cuhip](../../csrc/cuhip/README.md). `make soak` compares random programs with stock
([proofs](../../tests/proofs/README.md)); `make fuzz` and `make sanitize` test the readers and the
runtime.
"""
