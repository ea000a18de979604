"""The programs run on a release, as those of tests/rocm do."""

from tests.rocm.conftest import here  # noqa: F401
