"""How to install packages with the system's package manager."""

from __future__ import annotations

import shutil


def how_to_install(debian: str, elsewhere: str = "") -> str:
    """Returns the command that installs packages by their names in Debian and Ubuntu. Without
    apt-get the advice is `elsewhere`, by default to search for similar packages."""
    if shutil.which("apt-get"):
        return f"apt-get install {debian}"
    return elsewhere or f"install what Debian calls {debian}"
