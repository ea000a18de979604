"""Tests of `mgpu-rt check` on programs with correct accesses and with wrong accesses."""
