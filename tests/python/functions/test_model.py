"""A model of bench/models, which the tests call from NumPy, and from PyTorch on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import pytest

import mgpu_rt
from bench.models import program, reference
from bench.models.numbers import numbers
from bench.models.program import CHAIN, COPIED, INPUT_SEED, Variant
from bench.models.zoo import MODELS
from mgpu_rt._lowering import shared_library
from tests.devices.gpu import CHIP
from tests.support.child import BACKENDS_WITH_GPU, ROOT, Mgpu, environment, in_child
from tests.support.patience import run_process

MODEL = MODELS[0]
GRAPH = MODEL.graph()
INPUT = numbers(GRAPH.input.shape, INPUT_SEED, 1)
WEIGHTS = [
    numbers(weight.buffer.shape, INPUT_SEED + number, float(f"{weight.scale:e}"))
    for number, weight in enumerate(GRAPH.weights, 1)
]


def lowered(variant: Variant, chip: str | None = None, image: str | None = None) -> Path:
    """Lowers the model's forward pass without the main function, which fills the buffers and
    repeats the pass."""
    text = program.source(MODEL, variant)
    pass_of_it = text[text.index("func.func @forward") : text.index("func.func @main")]
    return shared_library.lower(pass_of_it, chip=chip, image=image, first=variant.passes)


@in_child(policies=("builtin",), backends=BACKENDS_WITH_GPU[1:])
def test_a_model_is_called_from_numpy(mgpu: Mgpu) -> None:
    model = mgpu_rt.Library(lowered(COPIED, *((CHIP, "isa") if mgpu.on_cuda else ())))
    output = numpy.zeros(GRAPH.output.shape, "f4")
    for _ in range(2):
        output[:] = 0
        model.forward(*WEIGHTS, INPUT, output)
        assert numpy.allclose(output, reference.output(MODEL), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"the array's shape is \(8, 783\)"):
        model.forward(*WEIGHTS, numpy.ascontiguousarray(INPUT[:, 1:]), output)
    assert mgpu.stderr() == ""


#: The weights and all buffers of the model are PyTorch tensors.
TORCH = """
import sys, numpy, torch, mgpu_rt
from bench.models import reference
from tests.python.functions.test_model import GRAPH, INPUT, MODEL, WEIGHTS

model = mgpu_rt.Library(sys.argv[1])
weights = [torch.from_numpy(weight).cuda() for weight in WEIGHTS]
listed = (GRAPH.input, *GRAPH.temporaries, GRAPH.output)
buffers = [torch.zeros(buffer.shape, device="cuda") for buffer in listed]
output = torch.zeros(GRAPH.output.shape)
result = output.numpy()
wanted = torch.from_numpy(reference.output(MODEL)).float()
for stream in (None, torch.cuda.Stream()):
    output.zero_()
    buffers[-1].zero_()
    torch.cuda.synchronize()
    with mgpu_rt.use_stream(stream):
        model.forward(*WEIGHTS, INPUT, result, *weights, *buffers)
        torch.cuda.synchronize()
    assert torch.allclose(output, wanted, rtol=1e-4, atol=1e-5)
    assert torch.allclose(buffers[-1].cpu(), wanted, rtol=1e-4, atol=1e-5)

# PyTorch accepts the package's arrays as tensors.
ours = mgpu_rt.to_device(numpy.arange(1000, dtype="f4"))
tensor = torch.as_tensor(ours, device="cuda")
assert tensor.is_cuda and tensor.data_ptr() == ours.__cuda_array_interface__["data"][0]
tensor += 1
torch.cuda.synchronize()
assert (ours.to_host() == numpy.arange(1, 1001)).all()
view = tensor[500:]
del ours, tensor
assert view.sum().item() == sum(range(501, 1001))
try:
    model.forward(*WEIGHTS, INPUT, result, *weights, *[b.double() for b in buffers])
except TypeError as error:
    print(error)
"""


@pytest.mark.gpu
def test_a_model_is_called_from_pytorch_on_a_gpu() -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-c", TORCH, lowered(CHAIN, CHIP, "isa")]
    result = run_process(command, environment("cuda", PYTHONPATH=str(ROOT)))
    assert result.returncode == 0, result.stderr
    assert "forward, argument" in result.stdout and "the elements are f64" in result.stdout
    assert "failed with" not in result.stderr
