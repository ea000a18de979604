"""The example for LLVM's JIT runners."""

from __future__ import annotations

import subprocess

import pytest

from tests.examples.conftest import EXAMPLES, Run, shown
from tests.support.child import ROOT

SCRIPT = EXAMPLES / "runner" / "run.sh"


@pytest.mark.parametrize("llvm", [22, 19])
def test_a_runner_prints_the_sum(llvm: int, run: Run) -> None:
    result = run("sh", "-c", shown("runner").replace("22", str(llvm)))
    assert result.stdout == "499500\n"
    assert result.stderr == ""


def test_a_release_that_it_does_not_know() -> None:
    result = subprocess.run(["sh", SCRIPT, "7"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == "run.sh: '7' is neither 22 nor 19\n"
