"""`mgpu-rt hoist`: takes module loads, function look-ups and streams out of lowered programs.

docs/hoist.md says what is moved, when not, and why.
"""
