"""Runs MLIR kernels with AMD's HIP 5.2.3 on the emulated device, and compares the results with
NumPy."""
