"""Runs every suite on every release, stores the results, and writes docs/record/tested.md.

    python -m tests.devices.rocm                    # all of it: make check-rocm
    python -m tests.devices.rocm --only 7.2.4       # one release
    python -m tests.devices.rocm --docs             # docs/record/tested.md from what is there

If only some releases run, the rows of all other releases stay unchanged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.devices.rocm import matrix, packages
from tests.devices.rocm.releases import RELEASES, Release
from tests.devices.rocm.suites import SUITES, Suite

TIME_LIMIT = 1200  # seconds for a suite on a release


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.devices.rocm", description=__doc__)
    parser.add_argument("--only", action="append", help="a release of HIP, such as 7.2.4")
    parser.add_argument("--suite", action="append", help="a suite, such as programs")
    parser.add_argument("--docs", action="store_true", help="only write docs/record/tested.md anew")
    chosen = parser.parse_args()
    failed = False if chosen.docs else run(chosen.only, chosen.suite)
    matrix.DOCUMENT.write_text(matrix.document(matrix.load()), encoding="utf-8")
    return int(failed)


def run(only: list[str] | None, suites: list[str] | None) -> bool:
    """Runs the selected suites; returns True if a test failed."""
    failed = False
    for release in RELEASES:
        if only and release.hip not in only:
            continue
        try:
            packages.fetch(release)
        except packages.PackagesMissing as reason:
            print(f"HIP {release.hip} is skipped: {reason}", flush=True)
            continue
        for suite in SUITES:
            chosen = not suites or suite.name in suites
            if chosen and (not suite.chip or suite.chip in release.chips):
                failed |= run_suite(release, suite)
    return failed


def run_suite(release: Release, suite: Suite) -> bool:
    abis = (release.abis[0], *release.abis[-1:]) if suite.newest_abi else release.abis[:1]
    failed = False
    for abi in dict.fromkeys(abis):
        row = matrix.row(release, suite, abi, pytest(release, suite, abi))
        words = " ".join([suite.name, suite.chip]).strip()
        counts = f"{row['passed']} passed, {row['failed']} failed"
        print(f"HIP {release.hip}, {words}, abi {abi}: {counts}", flush=True)
        matrix.keep(row)
        failed |= row["failed"] > 0
    return failed


def pytest(release: Release, suite: Suite, abi: int) -> matrix.Outcomes:
    """Returns the result of each test of a suite."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "outcomes.json")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.devices.rocm.plugin"]
        command += ["-m", "not gpu and not check_isa and not nightly"]
        command += ["--rocm", release.hip, "--rocm-abi", str(abi), "--rocm-outcomes", str(out)]
        command += ["--rocm-chip", suite.chip] if suite.chip else []
        done = subprocess.run(
            [*command, *suite.arguments],
            cwd=packages.ROOT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
        if done.returncode not in (0, 1) or not out.exists():
            raise SystemExit(f"pytest failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        if done.returncode:
            print(done.stdout[-4000:], flush=True)
        return {test: tuple(what) for test, what in json.loads(out.read_text()).items()}


if __name__ == "__main__":
    sys.exit(main())
