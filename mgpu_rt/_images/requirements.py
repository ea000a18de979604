"""The packages that read images."""

from __future__ import annotations

import importlib
import sys

PACKAGES = {"elftools": "pyelftools", "msgpack": "msgpack"}  # the package of each imported module


def check() -> None:
    """Raises ModuleNotFoundError with the remedy if a package is missing. pip installs these
    packages together with mgpu_rt; an installation without pip may lack a package."""
    for module, package in PACKAGES.items():
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"reading images needs {package}, which {sys.executable} lacks: {sys.executable} "
                f"-m pip install {' '.join(PACKAGES.values())}",
                name=module,
            ) from None
