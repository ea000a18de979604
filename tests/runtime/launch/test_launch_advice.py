"""A refused launch gets advice that names the limit which the launch exceeds. A launch whose sizes
HIP cuts to 32 bits runs as with stock, and gets a line."""

from __future__ import annotations

import ctypes
import os

from tests.support.child import Mgpu, in_child
from tests.support.images import code_object

KERNEL = "test_func"
OUT_OF_MEMORY = 2


def _advice(mgpu: Mgpu) -> list[str]:
    return [line for line in mgpu.stderr().splitlines() if line.startswith("mgpu_rt: ")]


def _function(mgpu: Mgpu) -> object:
    return mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)


def _launch_with(mgpu: Mgpu, function: object, memory: int) -> None:
    """Launches one block with dynamic workgroup memory."""
    null = mgpu.ffi.NULL
    mgpu.lib.mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, memory, null, null, null, 0)


@in_child(backends=("softgpu",))
def test_the_limit_of_a_grid_is_named(mgpu: Mgpu) -> None:
    mgpu.launch(_function(mgpu), grid=(2**24, 1, 1), block=(256, 1, 1))
    (said,) = _advice(mgpu)
    assert "grid 16777216 x 1 x 1, block 256 x 1 x 1, " in said
    assert "a dimension of the grid may have at most 2^32 - 1 (4,294,967,295) threads" in said


@in_child(backends=("softgpu",))
def test_the_devices_limit_of_workgroup_memory_is_named(mgpu: Mgpu) -> None:
    _launch_with(mgpu, _function(mgpu), 65537)
    (said,) = _advice(mgpu)
    assert "65537 bytes of dynamic workgroup memory, and 0 bytes that kernel 'test_func'" in said
    assert "more than the 65536 bytes that a block may have on this GPU" in said


@in_child(
    HIPSTUB_FAULT="hipModuleLaunchKernel:*:9,hipDeviceGetAttribute:*:1",
)
def test_an_unknown_limit_is_not_named(mgpu: Mgpu) -> None:
    _launch_with(mgpu, _function(mgpu), 65537)
    (said,) = _advice(mgpu)
    assert "65537 bytes of dynamic workgroup memory: each size must be at least 1" in said
    assert "at most 2^32 - 1 (4,294,967,295) threads" in said


@in_child(HIPSTUB_FAULT="hipModuleLaunchKernel:*:9")
def test_hip_is_asked_once_for_the_limit(mgpu: Mgpu) -> None:
    for memory in (65537, 65538):
        _launch_with(mgpu, _function(mgpu), memory)
    (said,) = _advice(mgpu)
    assert "more than the 65536 bytes" in said
    assert mgpu.count("hipDeviceGetAttribute") == 1


@in_child(backends=("softgpu",))
def test_the_question_for_a_limit_leaves_the_last_error(mgpu: Mgpu) -> None:
    """HIP 5.2.3 clears the last error when a call on its thread succeeds."""
    _launch_with(mgpu, _function(mgpu), 65537)
    assert "more than the 65536 bytes" in _advice(mgpu)[0]
    assert ctypes.CDLL(os.environ["MGPU_RT_HIP"]).hipPeekAtLastError() == OUT_OF_MEMORY


@in_child(backends=("stub", "softgpu"))
def test_a_launch_that_hip_cuts_gets_one_line(mgpu: Mgpu) -> None:
    function = _function(mgpu)
    for _ in range(2):
        mgpu.launch(function, grid=(2**32 + 1, 1, 1), block=(1, 1, 1))
        mgpu.StreamSynchronize(mgpu.null)
    (said,) = _advice(mgpu)
    assert (
        "a grid of 4294967297 x 1 x 1 with blocks of 1 x 1 x 1 becomes a grid of 1 x 1 x 1" in said
    )


@in_child(backends=("stub", "softgpu"))
def test_a_launch_that_hip_cuts_to_nothing_names_the_cut(mgpu: Mgpu) -> None:
    mgpu.launch(_function(mgpu), grid=(1, 2**32, 1), block=(1, 1, 1))
    (said,) = _advice(mgpu)
    assert "becomes a grid of 1 x 0 x 1" in said


@in_child()
def test_a_block_that_hip_cuts_gets_a_line(mgpu: Mgpu) -> None:
    mgpu.launch(_function(mgpu), block=(1, 1, 2**32 + 1))
    (said,) = _advice(mgpu)
    assert "with blocks of 1 x 1 x 4294967297 becomes" in said
