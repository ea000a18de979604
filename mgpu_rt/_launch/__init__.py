"""Launches kernels from Python: modules (Module), arguments (arguments, arrays), streams (streams).
`import mgpu_rt` provides the names that users need."""
