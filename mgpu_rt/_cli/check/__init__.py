"""`mgpu-rt check`: a program on the emulated device, which reports each wrong access."""
