"""torch.cuda.graph around lowered functions, on an NVIDIA GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.devices.gpu import CHIP
from tests.python.launches import EXAMPLES, KERNELS, run
from tests.support import lower
from tests.support.child import ROOT, environment

pytestmark = pytest.mark.gpu

#: The program allocates, copies both ways, launches, frees and waits while PyTorch captures. No
#: call may end the capture, and no other owner may get the memory while the graph can be replayed.
#: Between replays, the function processes other numbers without the graph, and PyTorch allocates
#: memory.
CAPTURED = """
import ctypes, lowered, torch, mgpu_rt
from descriptor import Memref

COUNT = 1000
functions = ctypes.CDLL(str(lowered.shared_library()))
host = (ctypes.c_float * COUNT)()
other = (ctypes.c_float * COUNT)()

def scale(array, factor):
    memref = Memref(ctypes.addressof(array), COUNT)
    functions._mlir_ciface_scale_on_host(ctypes.byref(memref), ctypes.c_float(factor))

def fill(array, begin):
    array[:] = [float(begin + i) for i in range(COUNT)]

def holds(array, begin, factor):
    return list(array) == [float((begin + i) * factor) for i in range(COUNT)]

stream = torch.cuda.Stream()
for mode in ("global", "thread_local", "relaxed"):
    with mgpu_rt.use_stream(stream):
        fill(host, 1)
        scale(host, 2)
        stream.synchronize()
        assert holds(host, 1, 2)
        graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
        for factor, graph in enumerate(graphs, 2):
            with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
                scale(host, factor)
    for number in range(20):
        for factor, graph in enumerate(graphs, 2):
            fill(host, number)
            graph.replay()
            torch.cuda.synchronize()
            assert holds(host, number, factor), (mode, number, factor)
            fill(other, 100 + number)
            scale(other, 5)
            assert holds(other, 100 + number, 5), (mode, number)
            assert torch.full((COUNT,), 7.0, device="cuda").sum().item() == 7 * COUNT
print("right")
"""


def on_the_gpu(*words: str, image: str) -> tuple[str, str]:
    """Runs a Python program of the examples' folder on the GPU, and returns the program's stdout
    and stderr."""
    compiled = lower.lower(KERNELS, llvm=22, chip=CHIP, image=image)
    env = environment("cuda", OBJECT=str(compiled), PYTHONPATH=f"{ROOT}:{EXAMPLES}")
    return run(sys.executable, *words, env=env)


@pytest.mark.parametrize("image", ("bin", "isa"))
def test_the_example_replays_with_changed_tensors(image: str) -> None:
    pytest.importorskip("torch")
    out, said = on_the_gpu("torch_graph.py", image=image)
    assert out == "5000 right results\n"
    assert "failed with" not in said


@pytest.mark.parametrize("image", ("bin", "isa"))
def test_a_graph_has_the_memory_and_waits_of_a_captured_function(
    image: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "captured.py"
    program.write_text(CAPTURED)
    out, said = on_the_gpu(str(program), image=image)
    assert out == "right\n"
    assert "failed with" not in said
