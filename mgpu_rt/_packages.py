"""Advice on how to install packages with the system's package manager."""

from __future__ import annotations

import shutil


def how_to_install(debian: str, elsewhere: str = "") -> str:
    """Returns the command that installs packages by their names in Debian and Ubuntu. If apt-get is
    missing, returns `elsewhere`, or advice with the packages' names if `elsewhere` is empty."""
    if shutil.which("apt-get"):
        return f"apt-get install {debian}"
    return elsewhere or f"install what Debian calls {debian}"
