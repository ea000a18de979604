"""`mgpu-rt hoist`: moves module loads, function look-ups and streams out of lowered programs.

docs/hoist.md says what is moved, what is not, and why.
"""
