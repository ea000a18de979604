"""Calls lowered host functions from Python. The modules `types` and `sidecar` read the functions'
types. The modules `arguments`, `values`, `descriptors` and `results` convert arguments and results.
The module `library` defines libraries of functions."""
