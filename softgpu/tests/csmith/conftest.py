"""The programs run on a release, as those of tests/devices/rocm do."""

from tests.devices.rocm.conftest import here  # noqa: F401
