"""Calls lowered host functions from Python: their types (types, sidecar), arguments and results in
memory (values, descriptors, results), and the library that holds them (library)."""
