"""Tests the package in Python programs: modules, arguments, streams, errors, the examples."""

from pathlib import Path

from tests.support.patience import run_process

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
KERNELS = EXAMPLES / "kernels.mlir"


def run(*words: object, env: dict[str, str], cwd: Path = EXAMPLES) -> tuple[str, str]:
    """Runs a command and returns its stdout and stderr. The test fails if the command fails."""
    result = run_process([str(word) for word in words], env, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr
