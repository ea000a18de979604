"""The checker, `mgpu-rt check`."""
