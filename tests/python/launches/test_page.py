"""Runs the examples of docs/python.md, "The API", unchanged and one after the other."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import ROOT, environment
from tests.support.patience import run_process

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").split("## The manager")[0]


def test_examples_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    shutil.copy(lower.lower(KERNELS, llvm=22), tmp_path / "kernels.o")
    shutil.copy(KERNELS, tmp_path)
    result = run_process(
        [sys.executable, "-c", "\n".join(blocks)],
        environment("softgpu", PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "hipErrorOutOfMemory\n"
    first, *others = result.stderr.splitlines()
    assert first.startswith("'hipModuleLaunchKernel(") and len(others) == 1
