"""Computes c = a + b with a kernel compiled by MLIR, launched from Python on NumPy arrays.

mgpu-rt run --device softgpu -- python vecadd.py
"""

import lowered
import numpy

import mgpu_rt
from mgpu_rt import In, MemRef, Out

COUNT, THREADS = 1000, 256
BLOCKS = (COUNT + THREADS - 1) // THREADS

a = numpy.arange(COUNT, dtype=numpy.float32)
b = numpy.ones(COUNT, dtype=numpy.float32)
c = numpy.empty(COUNT, dtype=numpy.float32)

with mgpu_rt.Module(lowered.object_file()) as kernels:
    kernels["add"](BLOCKS, THREADS, MemRef(In(a)), MemRef(In(b)), MemRef(Out(c)), COUNT)
    assert (c == a + b).all()

    kernels["scale"](BLOCKS, THREADS, MemRef(c), 0.5, COUNT)
    assert (c == (a + b) / 2).all()

print(f"{COUNT} right results, {mgpu_rt.stats()['cache']['streams']['misses']} stream created")
