"""Tests the example for LLVM's JIT runners."""

from __future__ import annotations

import pytest

from tests.release.examples.conftest import Run, shown

pytestmark = pytest.mark.check  # run with an installed library


@pytest.mark.parametrize("llvm", [22, 19])
def test_a_runner_prints_the_sum(llvm: int, run: Run) -> None:
    result = run("sh", "-c", shown("runner").replace("22", str(llvm)))
    assert result.stdout == "499500\n"
    assert result.stderr == ""
