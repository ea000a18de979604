"""Tests products of sparse matrices with two releases of hipSPARSE (make check-sparse)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.devices.rocm import packages, releases

HERE = Path(__file__).parent
NEWER = "7.2.4"  # the release on which the sums run beside the machine's own


def _passes(*words: str) -> bool:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-n0", *words]).returncode == 0


def main() -> int:
    packages.fetch_sparse(releases.find(NEWER))
    sums, lowered = str(HERE / "test_sums.py"), str(HERE / "test_lowered.py")
    newer = ("-p", "tests.devices.rocm.plugin", "--rocm", NEWER, "-k", "softgpu")
    right = [_passes(sums, lowered), _passes(*newer, sums)]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
