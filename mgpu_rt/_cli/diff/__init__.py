"""The command `mgpu-rt diff`."""
