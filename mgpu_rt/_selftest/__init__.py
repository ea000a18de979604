"""`mgpu-rt selftest`: whether results are stock's on this machine, and the gain.

`bundle` reads the programs, kernels and sequences that the wheel carries. `machine` finds the GPU
and the environment of children, and `children` runs them with a time limit. `right` and `fast` are
the verdict's two parts. `result` has the findings, with their schema; `words` and `page` show them.
"""
