"""A refused launch gets advice that names the limit which the launch exceeds. A launch whose sizes
HIP cuts to 32 bits runs as with stock, gets a line, and counts as failed."""

from __future__ import annotations

from tests.support.child import BACKENDS, Mgpu, in_child
from tests.support.known import forum

OUT_OF_MEMORY = 2


@in_child(backends=("softgpu",))
def test_the_limit_of_a_grid_is_named(mgpu: Mgpu) -> None:
    mgpu.launch(forum(mgpu), grid=(2**24, 1, 1), block=(256, 1, 1))
    (said,) = mgpu.advice()
    assert "grid 16777216 x 1 x 1, block 256 x 1 x 1, " in said
    assert "a dimension of the grid may have at most 2^32 - 1 (4,294,967,295) threads" in said


@in_child(backends=("softgpu",))
def test_a_size_of_0_is_named(mgpu: Mgpu) -> None:
    mgpu.launch(forum(mgpu), grid=(4, 0, 1))
    (said,) = mgpu.advice()
    assert said.endswith(": each size must be at least 1")


@in_child(backends=("softgpu",))
def test_too_much_workgroup_memory_leaves_hips_error(mgpu: Mgpu) -> None:
    null = mgpu.ffi.NULL
    mgpu.LaunchKernel(forum(mgpu), 1, 1, 1, 1, 1, 1, 65537, null, null, null, 0)
    (said,) = mgpu.advice()
    assert "65537 bytes of dynamic workgroup memory: on most AMD GPUs a block has 64 KB" in said
    assert mgpu.stub.hipPeekAtLastError() == OUT_OF_MEMORY


@in_child(backends=BACKENDS)
def test_a_launch_that_hip_cuts_gets_one_line(mgpu: Mgpu) -> None:
    function = forum(mgpu)
    for _ in range(2):
        mgpu.launch(function, grid=(2**32 + 1, 1, 1))
        mgpu.StreamSynchronize(mgpu.null)
        assert mgpu.ffi.string(mgpu.lib.mgpu_rt_take_error()) == b"hipErrorInvalidValue"
    assert mgpu.lib.mgpu_rt_failures() == 2
    (said,) = mgpu.advice()
    assert "a grid of 4294967297 x 1 x 1 with blocks of 1 x 1 x 1 becomes a grid of 1 x" in said


@in_child(backends=BACKENDS)
def test_a_launch_that_hip_cuts_to_nothing_names_the_cut(mgpu: Mgpu) -> None:
    mgpu.launch(forum(mgpu), grid=(1, 2**32, 1))
    (said,) = mgpu.advice()
    assert "becomes a grid of 1 x 0 x 1" in said
