"""The command mgpu-rt, and the environments in which it runs programs."""
