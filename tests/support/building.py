"""Builds the programs and libraries that a folder's tests need, before the first test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(session: pytest.Session, makefile: str) -> None:
    """Builds everything that a session needs; takes a moment if it is already built."""
    inner = "PYTEST_XDIST_WORKER" in os.environ or "MGPU_RT_TEST_LIBRARY" in os.environ
    if inner or session.config.option.collectonly:
        return
    plain = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    command = ["make", "-s", "-j2", "-f", makefile]
    made = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True)
    if made.returncode:
        pytest.exit(f"{made.stderr}Run make first.", returncode=1)
