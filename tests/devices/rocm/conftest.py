"""Selects the release for the tests in this folder. The option --rocm names the release, and the
default is the newest release."""

from __future__ import annotations

import pytest

from tests.devices.rocm.packages import PackagesMissing
from tests.devices.rocm.releases import RELEASES, find
from tests.devices.rocm.surroundings import Surroundings, surroundings


@pytest.fixture(scope="session")
def here(request: pytest.FixtureRequest) -> Surroundings:
    """Skips the test if the release is not available."""
    hip = request.config.getoption("--rocm", None)
    try:
        return surroundings(find(hip) if hip else RELEASES[-1])
    except PackagesMissing as reason:
        pytest.skip(str(reason))
