"""Launches kernels from Python."""
