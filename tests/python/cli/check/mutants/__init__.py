"""Programs that contain one fault each; `mgpu-rt check` must report each fault on its line.

The table MUTANTS of each module lists faults of one class. test_mutants.py runs all mutants."""
