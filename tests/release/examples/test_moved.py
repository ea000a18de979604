"""An installation may be moved: its command finds the package from its own place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.child import environment
from tests.support.patience import run_process


@pytest.mark.check
def test_a_moved_installation_finds_itself(prefix: Path, tmp_path: Path) -> None:
    place = shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    (tmp_path / "mgpu-rt").symlink_to(place / "bin" / "mgpu-rt")
    for command in (place / "bin" / "mgpu-rt", tmp_path / "mgpu-rt"):
        done = run_process([str(command), "config", "--path"], environment())
        assert done.stdout.startswith(f"{place}/lib/"), done.stderr
