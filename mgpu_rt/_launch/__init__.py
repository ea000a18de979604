"""Kernels launched from Python: modules (Module), what they are given (arguments, arrays), streams
(streams). `import mgpu_rt` has the names that users need."""
