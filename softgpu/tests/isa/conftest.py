"""Clears the mappings after each test of the interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .device import library


@pytest.fixture(autouse=True)
def fresh_mappings() -> Iterator[None]:
    yield
    library().isa_unmap_all()
