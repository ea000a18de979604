"""Calls a lowered function on a NumPy array, on an array in device memory, and on a stream.

mgpu-rt run --device softgpu -- python function.py
"""

import os

import lowered
import numpy

import mgpu_rt

COUNT = 1000

path = mgpu_rt.lower(lowered.SOURCE, chip=os.environ.get("CHIP"))  # kept: only the first time costs
functions = mgpu_rt.Library(path)

x = numpy.arange(COUNT, dtype=numpy.float32)
functions.scale_on_host(x, 2.0)  # the function itself copies to the device and back
assert (x == 2 * numpy.arange(COUNT)).all()

array = mgpu_rt.to_device(x)  # PyTorch and CuPy take the array without a copy
stream = mgpu_rt.Stream()
with mgpu_rt.use_stream(stream):
    functions.scale_on_device(array, 3.0)  # this function expects device memory
    functions.scale_on_device(array, 2.0)
stream.synchronize()
assert (array.to_host() == 6 * x).all()

print(f"{COUNT} right results")
