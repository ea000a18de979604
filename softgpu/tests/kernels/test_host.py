"""The harness of the kernel tests detects wrong values, reports faults, and works after faults."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from softgpu.tests.kernels import control
from softgpu.tests.kernels.compare import bf16, from_bf16, mismatch
from softgpu.tests.kernels.host import DeviceFailed, Host
from softgpu.tests.kernels.images import image
from softgpu.tests.kernels.program import Launch, Module

FAULTY = Module("faulty")


@FAULTY.program("""
    gpu.func @far(%out: memref<?xi32>, %at: index) kernel {
      %one = arith.constant 1 : i32
      memref.store %one, %out[%at] : memref<?xi32>
      gpu.return
    }""")
def far(rng: np.random.Generator) -> Launch:
    return Launch([np.zeros(4, np.int32), np.int64(2**40)], {}, block=(1,))


def test_a_fault_is_reported_and_the_next_launch_runs(hosts: Callable[[str], Host]) -> None:
    host, rng = hosts("gfx90a"), np.random.default_rng(0)
    code = image(FAULTY, "gfx90a")
    with pytest.raises(DeviceFailed, match=r"softgpu: kernel far"):
        host.run(code, "far", far(rng))
    near = dataclasses.replace(far(rng), arguments=[np.zeros(4, np.int32), np.int64(2)])
    assert host.run(code, "far", near).arrays[0].tolist() == [0, 0, 1, 0]


def test_errors_of_hip_are_reported(hosts: Callable[[str], Host]) -> None:
    code = image(control.MODULE, "gfx90a")
    with pytest.raises(
        DeviceFailed, match=r"hipModuleGetFunction: hipError(NotFound|InvalidHandle)"
    ):
        hosts("gfx90a").run(code, "no_such_kernel", Launch([], {}))


@pytest.mark.parametrize(
    ("got", "expected", "ulp", "equal"),
    [
        ([1.0], [1.0], 0, True),
        ([0.0], [-0.0], 0, False),
        ([np.nan], [np.nan], 0, True),
        ([np.nan], [1.0], 4, False),
        ([1.0], [np.nan], 4, False),
        ([np.inf], [np.inf], 1, True),
        ([np.inf], [3.0e38], 4, False),
        ([1.0 + 2.0**-22], [1.0], 2, True),
        ([1.0 + 2.0**-22], [1.0], 1, False),
        ([1.0e-45], [0.0], 1, True),
    ],
)
def test_rounding_errors_count_as_equal(
    got: list[float], expected: list[float], ulp: float, equal: bool
) -> None:
    said = mismatch(np.array(got, np.float32), np.array(expected, np.float32), ulp)
    assert (said is None) == equal


def test_bf16_is_rounded_to_even() -> None:
    values = np.array([1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -3.4e38], np.float32)
    assert from_bf16(bf16(values)).tolist() == [1.0, 1.0, 1 + 2.0**-6, -np.inf]
