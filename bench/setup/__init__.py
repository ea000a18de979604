"""The preparations of a benchmark: devices, compiled programs, and the runtimes to compare."""
