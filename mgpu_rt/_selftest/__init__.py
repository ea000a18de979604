"""`mgpu-rt selftest`: whether results on this machine equal stock's, and how much time is saved.

`bundle` reads the programs, kernels and sequences in the wheel. `machine` finds the GPU and the
environment for child processes, and `children` runs them with a time limit. `right` and `fast`
produce the verdict's two parts. `result` contains the findings and their schema; `words` and `page`
show them.
"""
