"""A test that lacks a tool is skipped and names the tool; on CI the test fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt._lowering.toolchain import ToolchainMissing
from tests.support.child import ROOT, Mgpu, in_child

pytestmark = pytest.mark.check  # runs pytest in turn

LACKS = """
import pytest
from mgpu_rt._lowering.toolchain import ToolchainMissing
from tests.support import test_lacking

@pytest.mark.skipif(True, reason="valgrind is missing")
def test_marked(): pass

def test_raises(): raise ToolchainMissing("mlir-opt-22", "mlir-22-tools")

def test_child(): test_lacking.child_lacks("builtin", "stub")

@pytest.mark.skipif(True, reason="takes long")
def test_other(): pass
"""


@in_child()
def child_lacks(mgpu: Mgpu) -> None:
    raise ToolchainMissing("llc-22", "llvm-22")


ENDS = {"": "4 skipped", "true": "2 failed, 1 skipped, 1 error"}


@pytest.mark.parametrize(("ci", "ends"), ENDS.items(), ids=["here", "on CI"])
def test_missing_tools_are_named(ci: str, ends: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(LACKS)
    words = [
        "-q",
        "-rsf",
        "-p",
        "tests.support.suites",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:warnings",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--rootdir={tmp_path}", tmp_path],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1].startswith(ends), done.stdout
    for tool in ("valgrind", "mlir-opt-22", "llc-22"):
        assert f"{tool} is missing" in done.stdout
