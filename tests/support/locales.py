"""Locales that the machine may not have, made of glibc's sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.child import BUILD


def make_locales(wanted: dict[str, tuple[str, str]]) -> Path:
    """The folder, for LOCPATH, with each name's locale: its source and its codec."""
    out = BUILD / "tests" / "locales"
    if not shutil.which("localedef") or not Path("/usr/share/i18n/locales").is_dir():
        pytest.skip("no localedef, or no sources of locales (Debian: locales)")
    out.mkdir(parents=True, exist_ok=True)
    for name, (source, codec) in wanted.items():
        if not (out / name).exists():
            subprocess.run(
                ["localedef", "--no-archive", "-c", "-i", source, "-f", codec, str(out / name)],
                capture_output=True,
            )
    return out
