"""Files that stand in for LLVM's tools."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def stand_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str, text: str = "#!/bin/sh\n"
) -> Path:
    """Writes executable files with these names, and lets PATH begin with their folder. Returns the
    first file."""
    for name in names:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / names[0]
