"""Advice on how to install packages with the system's package manager or with pip."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any


def how_to_install(debian: str, elsewhere: str = "") -> str:
    """Returns the command that installs packages by their names in Debian and Ubuntu. If apt-get is
    missing, returns `elsewhere`, or advice with the packages' names if `elsewhere` is empty."""
    if shutil.which("apt-get"):
        return f"apt-get install {debian}"
    return elsewhere or f"install what Debian calls {debian}"


def how_to_add(packages: str, debian: str, pip: str = f"{sys.executable} -m pip") -> str:
    """Returns the command that adds packages to this Python: pip's, or that of the system whose
    Python refuses pip's packages."""
    if _is_externally_managed():
        return how_to_install(debian)
    return f"{pip} install {packages}"


def _is_externally_managed() -> bool:
    """Returns whether pip refuses to install packages into this Python (PEP 668)."""
    import sysconfig

    in_environment = sys.prefix != sys.base_prefix
    return not in_environment and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()


def numpy_for(user: str) -> Any:
    """Imports NumPy, an optional dependency of this package. Raises ImportError, which says how to
    install NumPy."""
    try:
        import numpy
    except ModuleNotFoundError:
        how = how_to_add("numpy", "python3-numpy", pip="pip")
        raise ImportError(f"{user} needs NumPy: {how}") from None
    return numpy
