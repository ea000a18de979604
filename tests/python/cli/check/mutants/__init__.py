"""Programs with one fault each, which `mgpu-rt check` has to find on its line.

A module of this package is a class of them: its table is MUTANTS. test_mutants.py runs all."""
