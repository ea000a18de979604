"""Programs that contain one fault each; `mgpu-rt check` must report each fault on its line.

Comments in atomics.mlir, no_races.mlir and streams.mlir name the faults of these programs
(form.py). The tables MUTANTS list faults of other programs. test_mutants.py runs all mutants."""
