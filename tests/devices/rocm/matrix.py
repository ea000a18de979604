"""The matrix of tested releases, stored as JSON and shown in docs/record/tested.md."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench import records
from softgpu.tests.amd import rocrand, rocrtst
from softgpu.tests.csmith import results as csmith
from tests.devices.rocm.releases import RELEASES, Release, find
from tests.devices.rocm.suites import SUITES

ROOT = Path(__file__).resolve().parents[3]
RESULTS = records.SUITES / "rocm.json"
DOCUMENT = ROOT / "docs" / "record" / "tested.md"

Outcomes = Mapping[str, tuple[str, str]]  # maps a test to (passed, failed or skipped; reason)

_LLVM = re.compile(r"\[(?:[a-z_]+-)?(22|19|15)-softgpu")
_CHIP = re.compile(r"gfx9[0-9a-f]+")
DEFAULT_CHIP = "gfx90a"
FORUMS_ABI = 400
NEWER_CHIPS = tuple({suite.chip for suite in SUITES if suite.chip})


def load() -> dict:
    return records.load(RESULTS)


def rows(
    release: Release, suite: str, abi: int, outcomes: Outcomes, presented: str = DEFAULT_CHIP
) -> list[dict]:
    """Returns a row for each chip and each LLVM version. The names of a suite's tests contain the
    chip and the LLVM version."""
    groups: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for test, outcome in outcomes.items():
        llvm, chip = _LLVM.search(test), _CHIP.search(test)
        key = (chip[0] if chip else presented, llvm[1] if llvm else "22")
        if suite == "programs" and key[1] == "15":
            key = ("gfx906", "15")  # the forum's command uses gfx906 and version 4
            if abi != FORUMS_ABI:
                continue
        groups.setdefault(key, {})[test] = outcome
    return [
        _row(release, suite, abi, chip, llvm, tests)
        for (chip, llvm), tests in sorted(groups.items())
    ]


def _row(release: Release, suite: str, abi: int, chip: str, llvm: str, tests: Outcomes) -> dict:
    count = Counter(outcome for outcome, _ in tests.values())
    reasons = Counter(_words(why) for outcome, why in tests.values() if outcome == "skipped")
    return {
        "hip": release.hip,
        "chip": chip,
        "abi": abi,
        "llvm": int(llvm),
        "suite": suite,
        "passed": count["passed"],
        "failed": count["failed"],
        "skipped": dict(sorted(reasons.items())),
        "failures": sorted(test for test, (outcome, _) in tests.items() if outcome == "failed"),
    }


def _words(why: str) -> str:
    return why.removeprefix("Skipped: ")


def replace(hip: str, suite: str, chip: str, new: list[dict]) -> None:
    """Replaces the old results of a suite on this release and chip with the rows in `new`."""
    results = load() if RESULTS.exists() else {"rows": []}

    def is_old(row: dict) -> bool:
        own = row["chip"] == chip if chip else row["chip"] not in NEWER_CHIPS
        return (row["hip"], row["suite"]) == (hip, suite) and own

    kept = [row for row in results["rows"] if not is_old(row)]
    results["rows"] = sorted(kept + new, key=_order)
    results["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    records.save(results, RESULTS)


def _order(row: Mapping) -> tuple:
    return (RELEASES.index(find(row["hip"])), *_kind(row))


def _kind(row: Mapping) -> tuple[int, int, str, int]:
    """Returns the key by which the table sorts a row: suite number, LLVM (newest first), device,
    code object version."""
    names = [suite.name for suite in SUITES]
    return (names.index(row["suite"]), -row["llvm"], row["chip"], row["abi"])


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
    """Returns a table. Each row stands for a suite, a device, an LLVM version and a code object
    version, and each column for a release."""
    cells: dict[tuple, dict[str, str]] = {}
    reasons: dict[str, int] = {}
    for row in sorted(results["rows"], key=_kind):
        cells.setdefault(_kind(row), {})[row["hip"]] = _counts(row, reasons)
    releases = [release.hip for release in RELEASES]
    lines = [
        "## Passed, failed, skipped\n",
        "Each number counts the tests that passed. If tests failed or were skipped, their numbers"
        "\nfollow, with the reason in brackets.\n",
        f"| suite | device | code object | LLVM | {' | '.join(f'HIP {hip}' for hip in releases)} |",
        "|---|---|---|---|" + "---|" * len(releases),
    ]
    for (suite, llvm, chip, abi), of in cells.items():
        counts = " | ".join(of.get(hip, "–") for hip in releases)
        lines.append(f"| {SUITES[suite].name} | {chip} | v{abi // 100} | {-llvm} | {counts} |")
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
the suites marked `gpu` on an NVIDIA H100 (driver 580), through
[csrc/cuhip](../../csrc/cuhip/README.md). `make soak` compares random programs with stock
([proofs](../../tests/proofs/README.md)); `make fuzz` and `make sanitize` test the readers and the
runtime.
"""
