"""Programs with one fault each, which `mgpu-rt check` must find on its line.

A module of this package is a class of faults: its table is MUTANTS. test_mutants.py runs all
mutants."""
