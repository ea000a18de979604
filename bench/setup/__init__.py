"""What a benchmark needs before it measures: devices, compiled programs, the sides compared."""
