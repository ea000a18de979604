"""The benchmarks: each returns the figures of one measurement."""
