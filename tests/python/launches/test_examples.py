"""Runs examples/python as users do."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.devices.gpu import CHIP
from tests.python.launches import EXAMPLES, KERNELS, run
from tests.support import lower
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND
from tests.support.patience import run_process

NUMPY = ("vecadd", "streams")
HERE = (*NUMPY, "function")
RESULT = "1000 right results, 1 stream created\n"
RESULTS = {"function": "1000 right results\n"}

needs_mlir = pytest.mark.skipif(
    importlib.util.find_spec("mlir") is None or importlib.util.find_spec("mlir.ir") is None,
    reason="MLIR's Python bindings are not installed: make check-jit",
)


@pytest.mark.check
@pytest.mark.parametrize("name", (*HERE, pytest.param("jit", marks=needs_mlir)))
def test_examples_run_by_the_command(name: str, tmp_path: Path) -> None:
    """The command runs in a folder that does not contain the example."""
    env = {key: value for key, value in environment().items() if not key.startswith("MGPU_RT_")}
    words = (COMMAND, "run", "--device", "softgpu", "--", sys.executable, EXAMPLES / f"{name}.py")
    assert run(*words, env=env, cwd=tmp_path) == (RESULTS.get(name, RESULT), "")


@pytest.mark.check
@pytest.mark.parametrize("name", (*HERE, pytest.param("jit", marks=needs_mlir)))
def test_examples_run_without_preloading(name: str) -> None:
    env = environment("softgpu", OBJECT=str(lower.lower(KERNELS, llvm=22)))
    assert run(sys.executable, f"{name}.py", env=env) == (RESULTS.get(name, RESULT), "")


# ---- on a GPU ----


@pytest.mark.gpu
@pytest.mark.parametrize("image", ("bin", "isa"))
@pytest.mark.parametrize("name", (*NUMPY, "tensors"))
def test_examples_run_on_a_gpu(name: str, image: str) -> None:
    pytest.importorskip("torch" if name == "tensors" else "numpy")
    compiled = lower.lower(KERNELS, llvm=22, chip=CHIP, image=image)
    env = environment("cuda", OBJECT=str(compiled), PYTHONPATH=str(ROOT))
    out, said = run(sys.executable, f"{name}.py", env=env)  # PyTorch may print lines of its own
    assert "1000 right results" in out
    assert "failed with" not in said


#: CuPy launches two kernels on a CuPy stream; a kernel of mgpu_rt runs on this stream between the
#: two kernels.
CUPY = """
import sys, cupy, numpy, mgpu_rt
from mgpu_rt import MemRef
kernels, count = mgpu_rt.Module(sys.argv[1]), 1000
stream = cupy.cuda.Stream(non_blocking=True)
for _ in range(100):
    with stream, mgpu_rt.use_stream(stream):
        a = cupy.arange(count, dtype=cupy.float32)
        b, c = a * 2, cupy.empty_like(a)
        kernels["add"](4, 256, MemRef(a), MemRef(b), MemRef(c), count)
        assert float(c.sum()) == 3 * count * (count - 1) / 2
    # Without use_stream, the library's own stream waits for the array's stream.
    with stream:
        a = cupy.arange(count, dtype=cupy.float32)
        kernels["scale"](4, 256, MemRef(a), 2.0, count)
        assert float(a.sum()) == count * (count - 1)

# CuPy uses the package's arrays without a copy, and keeps them alive.
ours = mgpu_rt.to_device(numpy.arange(count, dtype="f4"))
theirs = cupy.asarray(ours)
assert theirs.data.ptr == ours.__cuda_array_interface__["data"][0]
theirs += 1
cupy.cuda.Device().synchronize()
assert (ours.to_host() == numpy.arange(1, count + 1)).all()
view = theirs[500:]
del ours, theirs
assert float(view.sum()) == sum(range(501, count + 1))
try:
    kernels["scale"](4, 256, MemRef(a), 2.0, count, shared=1 << 30)
except mgpu_rt.HipError as error:
    print(error.name)
"""


@pytest.mark.gpu
def test_the_cupy_example_runs_on_a_gpu() -> None:
    pytest.importorskip("cupy")
    compiled = lower.lower(KERNELS, llvm=22, chip=CHIP, image="bin")
    env = environment("cuda", PYTHONPATH=str(ROOT))
    out, _ = run(sys.executable, "-c", CUPY, compiled, env=env)
    assert out.startswith("hipError")


# ---- the page ----


PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").split("## The manager")[0]


def test_examples_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    shutil.copy(lower.lower(KERNELS, llvm=22), tmp_path / "kernels.o")
    shutil.copy(KERNELS, tmp_path)
    result = run_process(
        [sys.executable, "-c", "\n".join(blocks)],
        environment("softgpu", PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "hipErrorOutOfMemory\n"
    first, *others = result.stderr.splitlines()
    assert first.startswith("'hipModuleLaunchKernel(") and len(others) == 1
