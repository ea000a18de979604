"""Compares whole MLIR kernels with NumPy, on AMD's HIP 5.2.3 over the emulated device."""
