"""Builds the wheel that the tests in this folder install. The wheel is built once for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release.install import machine


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    path = machine.open_folder()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def wheel(folder: Path) -> Path:
    """Builds a wheel from a copy of the sources with this machine's compiler, and removes the
    copy."""
    tree = machine.copy_sources(folder / "ein größerer ordner")
    built = machine.build(tree, folder / "dist", "wheel")
    shutil.rmtree(tree)
    return built
