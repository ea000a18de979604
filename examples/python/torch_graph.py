"""Captures a lowered function into a PyTorch graph, and replays the graph with other numbers in the
captured tensors.

mgpu-rt run -- python torch_graph.py                           # ROCm's PyTorch
CHIP=sm_90 mgpu-rt run --device cuda -- python torch_graph.py  # CUDA's
"""

import ctypes

import lowered
import torch
from descriptor import Memref

import mgpu_rt

COUNT, REPLAYS = 1000, 5

functions = ctypes.CDLL(str(lowered.shared_library()))
stream = torch.cuda.Stream()
given = torch.zeros(COUNT, device="cuda")
result = torch.zeros(COUNT, device="cuda")


def work() -> None:
    """The captured work is a PyTorch operation, the lowered function, and another PyTorch
    operation."""
    doubled = given * 2
    memref = Memref(doubled.data_ptr(), COUNT)
    functions._mlir_ciface_scale_on_device(ctypes.byref(memref), ctypes.c_float(3))
    result.copy_(doubled + 1)


with mgpu_rt.use_stream(stream):
    with torch.cuda.stream(stream):
        work()  # once plainly, which does the one-time work
    stream.synchronize()

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()  # nothing runs here

for number in range(REPLAYS):
    given.copy_(torch.arange(COUNT, dtype=torch.float32) + number)
    graph.replay()
    torch.cuda.synchronize()
    expected = 6 * (torch.arange(COUNT, dtype=torch.float32) + number) + 1
    assert torch.equal(result.cpu(), expected)

print(f"{REPLAYS * COUNT} right results")
