"""Tests products of sparse matrices with two releases of hipSPARSE, and records each result (make
check-sparse)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import records
from tests.devices.rocm import packages, releases
from tests.runtime.sparse.record import NEWER, RECORD

HERE = Path(__file__).parent


def _run(*words: str) -> tuple[bool, dict[str, str]]:
    """Returns whether all tests have passed, and the outcome of each test that ran."""
    with tempfile.NamedTemporaryFile() as file:
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "tests.devices.rocm.plugin"]
        ended = subprocess.run([*command, "--rocm-outcomes", file.name, *words], check=False)
        found = json.loads(Path(file.name).read_text())
    names = {name: name.partition("tests/runtime/sparse/")[2] for name in found}
    return ended.returncode == 0, {names[name]: found[name][0] for name in names}


def main() -> int:
    newer = releases.find(NEWER)
    packages.fetch_sparse(newer)
    sums, lowered = str(HERE / "test_sums.py"), str(HERE / "test_lowered.py")
    right, found = _run(sums, lowered)
    right_too, found_too = _run("--rocm", NEWER, "-k", "softgpu", sums)
    outcomes = {**found, **{f"{NEWER} {name}": found_too[name] for name in found_too}}
    records.save(dict(sorted(outcomes.items())), RECORD)
    return int(not (right and right_too))


if __name__ == "__main__":
    sys.exit(main())
