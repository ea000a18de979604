"""Runs the programs on a HIP release, as the tests in tests/devices/rocm do."""

from tests.devices.rocm.conftest import here  # noqa: F401
