"""Builds the files that the tests of the library need."""

from __future__ import annotations

import pytest

from tests.support.building import build
from tests.support.suites import *  # noqa: F403 - the hooks


def pytest_sessionstart(session: pytest.Session) -> None:
    build(session, "tests/build.mk")
