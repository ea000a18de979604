"""Builds locales that the machine may lack, from glibc's sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.child import BUILD
from tests.support.folders import locked


def make_locales(wanted: dict[str, tuple[str, str]]) -> Path:
    """Builds the folder for LOCPATH. For each name, the folder contains a locale that is compiled
    from the given source and codec."""
    out = BUILD / "tests" / "locales"
    if not shutil.which("localedef") or not Path("/usr/share/i18n/locales").is_dir():
        pytest.skip("no localedef, or no sources of locales (Debian: locales)")
    for name, (source, codec) in wanted.items():
        with locked(out / name):
            if not (out / name).exists():
                words = ["--no-archive", "-c", "-i", source, "-f", codec, str(out / name)]
                subprocess.run(["localedef", *words], capture_output=True)
    return out
