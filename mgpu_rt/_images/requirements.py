"""The packages that read images."""

from __future__ import annotations

import importlib
import sys

from mgpu_rt._packages import how_to_add

PACKAGES = {"elftools": "pyelftools", "msgpack": "msgpack"}  # the package of each imported module


def check() -> None:
    """Raises ModuleNotFoundError with the remedy if a package is missing. pip installs these
    packages together with mgpu_rt; an installation without pip may lack a package."""
    for module, package in PACKAGES.items():
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            names = PACKAGES.values()
            how = how_to_add(" ".join(names), " ".join(f"python3-{name}" for name in names))
            raise ModuleNotFoundError(
                f"reading images needs {package}, which {sys.executable} lacks: {how}", name=module
            ) from None
