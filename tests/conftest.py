"""Builds the files that the tests of the library need, and lets the workers share compiled
modules."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from tests.support.building import build
from tests.support.child import BUILD
from tests.support.folders import locked
from tests.support.suites import *  # noqa: F403 - the hooks


def pytest_sessionstart(session: pytest.Session) -> None:
    build(session, "tests/build.mk")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Lets one worker collect before all others in a new checkout. Pytest needs 7 s of a core to
    compile all modules of tests, and stores the result for the other workers."""
    stored = BUILD / "collected"
    if "PYTEST_XDIST_WORKER" in os.environ and not stored.exists():
        with locked(stored):
            if not stored.exists():
                result = yield
                stored.touch()
                return result
    return (yield)
