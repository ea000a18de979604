"""Runs a sample of the random C programs under `mgpu-rt check`; random_c.py runs all of them."""

from __future__ import annotations

import pytest

from tests.devices.rocm.packages import PackagesMissing
from tests.python.cli.check import random_c


@pytest.mark.nightly
def test_random_c_programs_have_no_fault() -> None:
    try:
        found = random_c.outcomes(range(8), workers=2)
    except PackagesMissing as reason:
        pytest.skip(str(reason))
    assert set(found.values()) == {random_c.RIGHT}
