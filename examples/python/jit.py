"""Calls a lowered function on a NumPy array through MLIR's ExecutionEngine.

    mgpu-rt run --device softgpu -- python jit.py

Needs MLIR's Python bindings, 22 or later: pip install 'mgpu_rt[jit]'.
"""

import ctypes

import lowered
import numpy
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.runtime import get_ranked_memref_descriptor

import mgpu_rt

COUNT = 1000

with ir.Context():
    program = ir.Module.parse(lowered.llvm_dialect())
    engine = ExecutionEngine(program, shared_libs=[mgpu_rt.library_path()])
engine.initialize()  # loads the kernels

array = numpy.arange(COUNT, dtype=numpy.float32)
memref = ctypes.pointer(ctypes.pointer(get_ranked_memref_descriptor(array)))
for _ in range(3):
    engine.invoke("scale_on_host", memref, ctypes.pointer(ctypes.c_float(2)))

assert (array == numpy.arange(COUNT) * 8).all()
print(f"{COUNT} right results, {mgpu_rt.stats()['cache']['streams']['misses']} stream created")
