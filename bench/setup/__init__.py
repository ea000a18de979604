"""The needs of a benchmark before it measures: devices, compiled programs, the sides compared."""
