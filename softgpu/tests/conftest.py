"""Builds the files that the device's tests need."""

from __future__ import annotations

import pytest

from tests.support.building import build
from tests.support.suites import *  # noqa: F403 - the hooks


def pytest_sessionstart(session: pytest.Session) -> None:
    build(session, "softgpu/tests/build.mk")
