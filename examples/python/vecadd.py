"""Computes c = a + b with a kernel compiled by MLIR, launched from Python on device arrays.

mgpu-rt run --device softgpu -- python vecadd.py
"""

import lowered
import numpy

import mgpu_rt
from mgpu_rt import In, MemRef

COUNT, THREADS = 1000, 256
BLOCKS = (COUNT + THREADS - 1) // THREADS

a = numpy.arange(COUNT, dtype=numpy.float32)
b = numpy.ones(COUNT, dtype=numpy.float32)
left, right, result = mgpu_rt.to_device(a), mgpu_rt.to_device(b), mgpu_rt.empty(COUNT)

kernels = mgpu_rt.Module(lowered.object_file())
kernels["add"](BLOCKS, THREADS, MemRef(In(left)), MemRef(In(right)), MemRef(result), COUNT)
assert (result.to_host() == a + b).all()

kernels["scale"](BLOCKS, THREADS, MemRef(result), 0.5, COUNT)
assert (result.to_host() == (a + b) / 2).all()

print(f"{COUNT} right results, {mgpu_rt.stats()['cache']['streams']['misses']} stream created")
