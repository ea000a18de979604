"""Advice on how to install packages with the system's package manager or with pip."""

from __future__ import annotations

import importlib
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


def how_to_add(*packages: str) -> str:
    """Returns the command that adds packages to this Python: pip's, or that of the system whose
    Python refuses pip's packages."""
    if _is_externally_managed():
        return how_to_install(" ".join(f"python3-{name}" for name in packages))
    return f"{sys.executable} -m pip install {' '.join(packages)}"


def _is_externally_managed() -> bool:
    """Returns whether pip refuses to install packages into this Python (PEP 668)."""
    import sysconfig

    in_environment = sys.prefix != sys.base_prefix
    return not in_environment and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()


def need(user: str, **packages: str) -> None:
    """Raises ModuleNotFoundError with the remedy if a module is missing. `packages` maps modules to
    the names of their packages."""
    for module, package in packages.items():
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            lacking = f"{user} needs {package}, which {sys.executable} lacks"
            how = how_to_add(*packages.values())
            raise ModuleNotFoundError(f"{lacking}: {how}", name=module) from None


def need_readers() -> None:
    """pip installs these packages together with mgpu_rt; `make install` does not."""
    need("reading images", elftools="pyelftools", msgpack="msgpack")


def numpy_for(user: str) -> Any:
    """Returns the module of NumPy, an optional dependency. Raises ModuleNotFoundError."""
    need(user, numpy="numpy")
    return sys.modules["numpy"]
