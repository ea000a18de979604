"""Programs with one fault each, which `mgpu-rt check` must report on the right line.

Each module covers a class of faults in its table MUTANTS. test_mutants.py runs all mutants."""
