"""The benchmarks: each measures one thing and returns its figures."""
