"""Calls lowered host functions from Python: defines the functions' types (types, sidecar),
arguments and results in memory (values, descriptors, results), and libraries of functions
(library)."""
