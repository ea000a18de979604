"""Fixtures for several files in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.runtime.hooked import hip, program
from tests.support.command import command


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("record") / "recording"
    words = ("run", "--device", "softgpu", "--kernel", "halve", "--nth", 2, "--record", out)
    done = command(*words, "--", program(), **hip())
    assert done.stdout == "2\n", done.stderr
    assert "recorded launch 2 of halve" in done.stderr
    return out


@pytest.fixture
def without_numpy(tmp_path: Path) -> dict[str, str]:
    """Creates an environment whose Python has no NumPy, as after `pip install mgpu_rt`."""
    (tmp_path / "without").mkdir()
    missing = "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n"
    (tmp_path / "without" / "numpy.py").write_text(missing)
    return {**hip(), "PYTHONPATH": str(tmp_path / "without")}
