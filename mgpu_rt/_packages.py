"""How to get what a system's package manager has."""

from __future__ import annotations

import shutil


def how_to_install(debian: str, elsewhere: str = "") -> str:
    """The way to packages by their names in Debian and Ubuntu. Without apt-get it is `elsewhere`,
    by default to look for the like of these."""
    if shutil.which("apt-get"):
        return f"apt-get install {debian}"
    return elsewhere or f"install what Debian calls {debian}"
