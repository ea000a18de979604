"""Selects the HIP release on which the programs run, as for the tests in tests/devices/rocm."""

from tests.devices.rocm.conftest import here  # noqa: F401
