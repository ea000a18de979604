"""Selects the HIP release for the programs in the same way as for the tests in
tests/devices/rocm."""

from tests.devices.rocm.conftest import here  # noqa: F401
