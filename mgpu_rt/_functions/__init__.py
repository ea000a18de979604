"""Calls lowered host functions from Python: defines their types (types, sidecar), arguments and
results in memory (values, descriptors, results), and their library (library)."""
