"""`mgpu-rt selftest`: compares the results of the library's and of stock's behaviour on this
machine, and measures the saved time.

`bundle` reads the programs, kernels and sequences in the wheel. `machine` finds the GPU and the
environment for child processes. `right` compares results, and `fast` measures the gain. `result`
contains the findings; `summary` shows them.
"""
