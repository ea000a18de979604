"""Benchmarks and the demonstration: programs, their lowering, and what they are compared with."""
