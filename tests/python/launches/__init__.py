"""Tests the package in Python programs: modules, arguments, streams, errors, the examples."""

import subprocess
from pathlib import Path

from tests.support.patience import HANG

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
KERNELS = EXAMPLES / "kernels.mlir"


def run(*words: object, env: dict[str, str], cwd: Path = EXAMPLES) -> tuple[str, str]:
    """Runs a command and returns its stdout and stderr. The test fails if the command fails."""
    result = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr
