"""Turns a lowered function into a graph: builds the graph once, then replays the graph with other
numbers.

mgpu-rt run --device softgpu -- python graph.py
"""

import ctypes

import lowered
import numpy
from descriptor import Memref

import mgpu_rt

COUNT, REPLAYS = 1000, 5

functions = ctypes.CDLL(str(lowered.shared_library()))
runtime = mgpu_rt.load()

array = numpy.zeros(COUNT, dtype=numpy.float32)
result = numpy.empty_like(array)
stream = runtime.mgpuStreamCreate()

with mgpu_rt.use_stream(stream):
    device = runtime.mgpuMemAlloc(array.nbytes, stream, False)
    # While the graph is built, two copies and a kernel become three nodes, and no work runs.
    with mgpu_rt.graph() as graph:
        runtime.mgpuMemcpy(device, array.ctypes.data, array.nbytes, stream)
        memref = Memref(device, COUNT)
        functions._mlir_ciface_scale_on_device(ctypes.byref(memref), ctypes.c_float(3))
        runtime.mgpuMemcpy(result.ctypes.data, device, result.nbytes, stream)

    for number in range(REPLAYS):
        array[:] = numpy.arange(COUNT) + number  # the graph reads it when it runs
        graph.replay()
        runtime.mgpuStreamSynchronize(stream)
        assert (result == 3 * array).all()

    print(f"{REPLAYS * COUNT} right results of {len(graph)} nodes")
    del graph  # releases the graph and its memory
    runtime.mgpuMemFree(device, stream)
runtime.mgpuStreamDestroy(stream)
