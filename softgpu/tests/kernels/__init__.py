"""Whole MLIR kernels, against NumPy, on AMD's HIP 5.2.3 over the emulated device."""
