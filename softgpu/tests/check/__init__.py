"""Tests of the checker, `mgpu-rt check`."""
