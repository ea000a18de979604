"""Builds what the tests of the device are run with."""

from __future__ import annotations

import pytest

from tests.support.building import build


def pytest_sessionstart(session: pytest.Session) -> None:
    build(session, "softgpu/tests/build.mk")
