"""Implements the command `mgpu-rt diff`."""
