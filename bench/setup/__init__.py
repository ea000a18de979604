"""The preparations of a benchmark: devices, compiled programs, the sides to compare."""
