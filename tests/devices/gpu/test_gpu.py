"""Tests that need an NVIDIA GPU: pytest -m gpu (tests/devices/gpu/run.sh)."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cffi import FFI

from tests.devices.gpu import CHIP, KERNELS, tensormap
from tests.python.snippets.outcomes import outcomes
from tests.support import lower
from tests.support.child import (
    BUILD,
    POLICIES,
    ROOT,
    Mgpu,
    environment,
    in_child,
    library,
    run_child,
)
from tests.support.patience import HANG
from tests.support.printing import print_library
from tests.support.programs import STOCK, execute, run_environment, ways

pytestmark = pytest.mark.gpu

on_gpu = in_child(policies=POLICIES, backends=("cuda",))

IMAGES = ("bin", "isa")
KILOBYTES_100 = 25_600 * 4


def _kernel(mgpu: Mgpu, name: str, image: str = "bin"):
    code = lower.code_object(KERNELS, CHIP, image=image)
    if image == "isa":
        module = mgpu.lib.mgpuModuleLoadJIT(mgpu.image(code + b"\0"), 2, 0)
    else:
        module = mgpu.load(mgpu.image(code))
    return mgpu.function(module, name)


def _params(mgpu: Mgpu, address, *indices: int):
    """Returns kernel arguments: the fields of a large memref<?xi32> at an address, followed by
    indices."""
    begin = int(mgpu.ffi.cast("uintptr_t", address))
    values = [mgpu.ffi.new("int64_t *", value) for value in (begin, begin, 0, 1 << 30, 1, *indices)]
    mgpu._kept.append(values)
    return mgpu.ffi.new("void *[]", values)


def _numbers(mgpu: Mgpu, address, count: int) -> list[int]:
    """Copies numbers from the device, and returns them."""
    content = mgpu.ffi.new("int32_t[]", count)
    mgpu.lib.mgpuMemcpy(content, address, 4 * count, mgpu.null)
    mgpu.StreamSynchronize(mgpu.null)
    return list(content)


def _zeros(mgpu: Mgpu, count: int):
    address = mgpu.MemAlloc(4 * count, mgpu.null, False)
    mgpu.lib.mgpuMemset32(address, 0, count, mgpu.null)
    mgpu.StreamSynchronize(mgpu.null)
    return address


# ---- streams -------------------------------------------------------------------------------------


@on_gpu
def test_kernels_that_wait_for_each_other_both_run(mgpu: Mgpu) -> None:
    """Two kernels on two streams wait for each other many times, so the test ends only if the
    kernels run concurrently."""
    meet, flags = _kernel(mgpu, "meet"), _zeros(mgpu, 2)
    for _ in range(100):
        left, right = mgpu.StreamCreate(), mgpu.StreamCreate()
        mgpu.launch(meet, left, params=_params(mgpu, flags, 0, 1))
        mgpu.launch(meet, right, params=_params(mgpu, flags, 1, 0))
        for stream in (left, right):
            mgpu.StreamSynchronize(stream)
            mgpu.StreamDestroy(stream)
        assert _numbers(mgpu, flags, 2) == [1, 1]
        mgpu.lib.mgpuMemset32(flags, 0, 2, mgpu.null)
    assert mgpu.stderr() == ""


@on_gpu
def test_the_null_stream_waits_for_the_others(mgpu: Mgpu) -> None:
    """Synchronising the null stream waits for all earlier work of the other streams."""
    ffi, flags = FFI(), _zeros(mgpu, 2)
    ffi.cdef(
        "int hipStreamCreateWithFlags(void **stream, unsigned flags);"
        "int hipMemsetD32Async(void *to, int value, size_t count, void *stream);"
    )
    hip = ffi.dlopen(os.environ["MGPU_RT_HIP"])
    apart, stream = ffi.new("void **"), mgpu.StreamCreate()
    assert hip.hipStreamCreateWithFlags(apart, 1) == 0
    mgpu.launch(_kernel(mgpu, "meet"), stream, params=_params(mgpu, flags, 0, 1))
    ended = threading.Event()

    def wait() -> None:
        mgpu.StreamSynchronize(mgpu.null)
        ended.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not ended.wait(0.2)  # the kernel waits for the flag
    second = int(mgpu.ffi.cast("uintptr_t", flags)) + 4
    assert hip.hipMemsetD32Async(ffi.cast("void *", second), 1, 1, apart[0]) == 0
    waiter.join(HANG)
    assert ended.is_set()
    assert mgpu.stderr() == ""


# ---- kernels -------------------------------------------------------------------------------------


@on_gpu
def test_a_kernel_may_have_100_kb_of_workgroup_memory(mgpu: Mgpu) -> None:
    null = mgpu.null
    for image in IMAGES:
        kernel, out = _kernel(mgpu, "through_workgroup_memory", image), _zeros(mgpu, 256)
        for _ in range(3):
            mgpu.lib.mgpuLaunchKernel(
                kernel, 1, 1, 1, 256, 1, 1, KILOBYTES_100, null, _params(mgpu, out), null, 0
            )
        assert _numbers(mgpu, out, 256) == [3 * i for i in range(256)]
    assert mgpu.stderr() == ""


@on_gpu
def test_a_kernel_runs_in_clusters(mgpu: Mgpu) -> None:
    kernel, out, null = _kernel(mgpu, "cluster_size"), _zeros(mgpu, 8), mgpu.null
    mgpu.launch(kernel, grid=(8, 1, 1), params=_params(mgpu, out))
    assert _numbers(mgpu, out, 8) == [1] * 8
    one = (1, 1, 1)
    for size in (2, 4, 8):
        mgpu.lib.mgpuLaunchClusterKernel(
            kernel, size, 1, 1, 8, 1, 1, *one, 0, null, _params(mgpu, out), null, 1
        )
        assert _numbers(mgpu, out, 8) == [size] * 8
    mgpu.lib.mgpuLaunchKernelCooperative(
        kernel, 8, 1, 1, 4, 1, 1, *one, 0, null, _params(mgpu, out), null
    )
    assert _numbers(mgpu, out, 8) == [4] * 8
    mgpu.lib.mgpuLaunchKernelCooperative(
        kernel, 8, 1, 1, 0, 0, 0, *one, 0, null, _params(mgpu, out), null
    )
    assert _numbers(mgpu, out, 8) == [1] * 8
    assert mgpu.stderr() == ""


@on_gpu
def test_both_forms_of_a_tensor_map_are_equal(mgpu: Mgpu) -> None:
    """mgpuTensorMapEncodeTiledMemref and mgpuTensorMapEncodeTiled encode the same tensor map.
    mgpuTensorMapEncodeTiledMemref takes the dimensions in reverse order, and copies the tensor map
    to the device."""
    float32, ffi = 7, mgpu.ffi
    tensor = mgpu.MemAlloc(64 * 32 * 4, mgpu.null, False)
    begin = int(ffi.cast("uintptr_t", tensor))
    descriptor = ffi.new("int64_t[]", [begin, begin, 0, 64, 32, 32, 1])
    box = ffi.new("int64_t[]", [16, 8])
    on_device = mgpu.lib.mgpuTensorMapEncodeTiledMemref(
        2, ffi.cast("struct mgpu_memref *", descriptor), float32, 0, 0, 0, 0, box
    )
    plain = ffi.new("char[]", 256)
    aligned = ffi.cast("char *", (int(ffi.cast("uintptr_t", plain)) + 63) & ~63)
    mgpu.lib.mgpuTensorMapEncodeTiled(
        aligned, float32, 2, tensor, [32, 64], [32 * 4], [8, 16], [1, 1], 0, 0, 0, 0
    )
    words = list(struct.unpack("<32i", ffi.buffer(aligned, 128)))
    assert any(words)
    assert _numbers(mgpu, on_device, 32) == words
    assert mgpu.stderr() == ""
    box[0] = 1000
    assert not mgpu.lib.mgpuTensorMapEncodeTiledMemref(
        2, ffi.cast("struct mgpu_memref *", descriptor), float32, 0, 0, 0, 0, box
    )
    assert "failed with 'hipErrorInvalidValue'" in mgpu.stderr()


@pytest.mark.parametrize("image", IMAGES)
def test_the_tensor_memory_accelerator_loads_the_right_tile(image: str, tmp_path: Path) -> None:
    """The GPU loads a box from a 64 by 32 matrix through the tensor map that MLIR encodes. The box
    begins at row 32, column 8."""
    helper = print_library()
    program = lower.link(
        [tensormap(image)],
        libraries=[library(), helper],
        rpath=[library().parent, helper.parent],
        out=tmp_path / "program",
    )
    outcome = execute([str(program)], run_environment(ways()["linked"], "cuda", 22, "builtin"))
    tile = [f"{(32 + row) * 32 + 8 + column}" for row in range(16) for column in range(8)]
    assert (outcome.signal, outcome.stderr) == (0, "")
    assert outcome.stdout.split() == tile


@on_gpu
def test_the_compilers_log_is_printed(mgpu: Mgpu) -> None:
    text = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { nonsense; }\n\0"
    assert not mgpu.lib.mgpuModuleLoadJIT(mgpu.image(text), 2, 0)
    said = mgpu.stderr()
    assert said.startswith("JIT compilation failed with: 'ptxas application ptx input, line 4")
    assert "'hipModuleLoadData(&module, data)' failed with 'hipErrorInvalidKernelFile'" in said


# ---- a kernel that goes wrong --------------------------------------------------------------------


def out_of_bounds(mgpu: Mgpu) -> None:
    """Writes to unmapped memory, and prints the resulting errors to stdout."""
    kernel, stream = _kernel(mgpu, "cluster_size"), mgpu.StreamCreate()
    mgpu.launch(kernel, stream, params=_params(mgpu, mgpu.ffi.cast("void *", 1 << 44)))
    mgpu.StreamSynchronize(stream)
    mgpu.StreamSynchronize(stream)
    mgpu.StreamDestroy(stream)
    said = [line for line in mgpu.stderr().splitlines() if line.startswith("'")]
    assert said[0] == "'hipStreamSynchronize(stream)' failed with 'hipErrorIllegalAddress'", said
    Path(os.environ["MGPU_RT_TEST_SAID"]).write_text(json.dumps(said))


out_of_bounds.child = out_of_bounds  # type: ignore[attr-defined]


def test_out_of_bounds_is_reported_and_the_program_goes_on(tmp_path: Path) -> None:
    """The program continues after the invalid write, and receives the same errors as with LLVM's
    own library."""
    said = {}
    for name, extra in (
        ("ours", {}),
        ("builtin", {"MGPU_RT_MANAGER": "off"}),
        ("stock", {"MGPU_RT_TEST_LIBRARY": str(STOCK), "LD_LIBRARY_PATH": str(BUILD / "cuhip")}),
    ):
        path = tmp_path / name
        env = environment("cuda", MGPU_RT_TEST_SAID=str(path), **extra)
        run_child(__name__, "out_of_bounds", env)
        said[name] = json.loads(path.read_text())
    assert said["ours"] == said["builtin"]
    assert said["ours"][:2] == said["stock"][:2]


# ---- comparison with AMD's HIP -------------------------------------------------------------------


#: Functions whose results depend on AMD's device. The test does not compare these functions.
#: hipMemGetInfo differs too, because NVIDIA's driver allocates device memory in units of 2 MB.
OF_THE_DEVICE = {"hipDeviceGetAttribute", "hipDriverGetVersion", "hipMemGetInfo"}
OF_THE_DEVICE |= {"hipModuleLoadData", "hipDeviceReset", "hipGetDeviceProperties"}


def test_error_codes_equal_those_of_amd() -> None:
    """Runs snippets with HIP's functions on NVIDIA's driver. The functions must return the error
    codes of AMD's HIP."""
    stub, cuda = outcomes("stub"), outcomes("cuda")
    differences = [
        f"{name}: {theirs}, AMD's {ours}; {cuda[name]['problem'][-200:]}"
        for name in sorted(set(stub) - OF_THE_DEVICE)
        for theirs, ours in itertools.zip_longest(cuda[name]["codes"], stub[name]["codes"])
        if theirs != ours
    ]
    assert "\n".join(differences) == ""


# ---- the sanitizer -------------------------------------------------------------------------------


def test_the_sanitizer_sees_into_the_tests(tmp_path: Path) -> None:
    """Proves that the sanitizer reports a wrong access that a child process makes."""
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    log = tmp_path / "log"
    subprocess.run(
        [sanitizer, "--target-processes=all", f"--log-file={log}", sys.executable, "-m",
         "tests.support.child", __name__, "out_of_bounds"],
        cwd=ROOT,
        env=environment("cuda", MGPU_RT_TEST_SAID=str(tmp_path / "said")),
        capture_output=True,
        timeout=HANG,
    )  # fmt: skip
    assert "Invalid __global__ write of size 4 bytes" in log.read_text()
