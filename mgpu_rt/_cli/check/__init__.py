"""`mgpu-rt check`: runs a program on the emulated device, which reports each wrong access."""
