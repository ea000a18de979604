"""Runs a lowered function, then a kernel, on one stream of the program.

    mgpu-rt run --device softgpu -- python streams.py

In this example mgpu_rt creates the stream; tensors.py passes a stream of PyTorch in the same way.
"""

import ctypes

import lowered
import numpy
from descriptor import Memref

import mgpu_rt

COUNT, THREADS = 1000, 256
BLOCKS = (COUNT + THREADS - 1) // THREADS

functions = ctypes.CDLL(str(lowered.shared_library()))
kernels = mgpu_rt.Module(lowered.object_file())
runtime = mgpu_rt.load()

array = numpy.arange(COUNT, dtype=numpy.float32)
result = numpy.empty_like(array)
stream = runtime.mgpuStreamCreate()

with mgpu_rt.use_stream(stream):
    device = runtime.mgpuMemAlloc(array.nbytes, stream, False)
    runtime.mgpuMemcpy(device, array.ctypes.data, array.nbytes, stream)

    # The lowered function calls mgpuStreamCreate, which returns the lent stream.
    memref = Memref(device, COUNT)
    functions._mlir_ciface_scale_on_device(ctypes.byref(memref), ctypes.c_float(3))

    # The kernel runs on the lent stream too, and Python does not wait for the kernel.
    kernels["scale"](BLOCKS, THREADS, device, device, 0, COUNT, 1, 0.5, COUNT)

    runtime.mgpuMemcpy(result.ctypes.data, device, result.nbytes, stream)
    runtime.mgpuStreamSynchronize(stream)
    runtime.mgpuMemFree(device, stream)

runtime.mgpuStreamDestroy(stream)
assert (result == array * 1.5).all()
print(f"{COUNT} right results, {mgpu_rt.stats()['cache']['streams']['misses']} stream created")
