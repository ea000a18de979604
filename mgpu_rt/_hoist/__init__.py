"""`mgpu-rt hoist`: moves module loads, function look-ups and streams out of lowered programs.

docs/jit.md describes which operations hoist moves, and why the other operations stay.
"""
