"""Passes PyTorch tensors to a kernel and a lowered function, on a PyTorch stream.

mgpu-rt run -- python tensors.py                           # ROCm's PyTorch
CHIP=sm_90 mgpu-rt run --device cuda -- python tensors.py  # CUDA's
"""

import ctypes

import lowered
import torch
from descriptor import Memref

import mgpu_rt
from mgpu_rt import MemRef

COUNT, THREADS = 1000, 256
BLOCKS = (COUNT + THREADS - 1) // THREADS

functions = ctypes.CDLL(str(lowered.shared_library()))
kernels = mgpu_rt.Module(lowered.object_file())
stream = torch.cuda.Stream()

with torch.cuda.stream(stream), mgpu_rt.use_stream(stream):
    a = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    b = torch.ones_like(a)
    c = torch.empty_like(a)

    # The stream orders PyTorch's work, the kernel and the lowered function.
    kernels["add"](BLOCKS, THREADS, MemRef(a), MemRef(b), MemRef(c), COUNT)
    memref = Memref(c.data_ptr(), COUNT)
    functions._mlir_ciface_scale_on_device(ctypes.byref(memref), ctypes.c_float(2))
    total = c.sum().item()

assert total == COUNT * (COUNT + 1)
print(f"{COUNT} right results, {mgpu_rt.stats()['cache']['streams']['misses']} streams created")
