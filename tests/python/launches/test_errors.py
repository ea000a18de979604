"""HIP failures that the ABI does not return become exceptions."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import mgpu_rt
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import Mgpu, in_cases, in_child


def error(mgpu: Mgpu) -> str | None:
    name = mgpu.lib.mgpu_rt_take_error()
    return mgpu.ffi.string(name).decode() if name else None


@in_child(policies=("builtin",), backends=("stub", "softgpu"))
def test_the_error_is_reported_once(mgpu: Mgpu) -> None:
    assert error(mgpu) is None
    mgpu.launch(mgpu.null)
    mgpu.MemFree(mgpu.null, mgpu.null)  # which succeeds
    name = error(mgpu)
    assert name and name.startswith("hipErrorInvalid")
    assert f"failed with '{name}'" in mgpu.stderr()
    assert error(mgpu) is None


@in_child(policies=("builtin",), MGPU_RT_HIP="/nowhere/libamdhip64.so")
def test_a_launch_without_hip_has_an_error(mgpu: Mgpu) -> None:
    mgpu.launch(mgpu.null)
    assert error(mgpu) == "hipErrorSharedObjectInitFailed"


def kernels() -> mgpu_rt.Module:
    return mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))


def scale(module: mgpu_rt.Module, **options: Any) -> None:
    module["scale"](1, 8, 64, 64, 0, 8, 1, 2.0, 8, **options)


#: For each failing function of HIP: the error, the exception's words, and the error's name.
FAULTS = {
    "hipModuleLoadData": (1, "the image was not loaded: hipErr", "hipErrorInvalidValue"),
    "hipModuleGetFunction": (500, "has no kernel 'scale': hipErr", "hipErrorNotFound"),
    "hipStreamCreate": (1, "HIP created no stream", "hipErrorInvalidValue"),
    "hipModuleLaunchKernel": (1, "kernel 'scale' was not launched", "hipErrorInvalidValue"),
    "hipStreamSynchronize": (1, "kernel 'scale' failed", "hipErrorInvalidValue"),
}


@in_cases({function: {} for function in FAULTS})
def test_a_failure_of_hip_raises(mgpu: Mgpu, function: str) -> None:
    """The fault affects one launch only: the next launch succeeds. Without a stream the package
    launches no kernel, not even on the null stream."""
    number, words, name = FAULTS[function]
    mgpu.stub.hipstub_set_fault(f"{function}:*:{number}".encode())
    with pytest.raises(mgpu_rt.HipError, match=words) as raised:
        scale(kernels())
    assert raised.value.name == name and isinstance(raised.value, RuntimeError)
    assert f"failed with '{name}'" in mgpu.stderr()
    assert mgpu.count("hipModuleLaunchKernel") == (function in [*FAULTS][3:])
    sent = pickle.loads(pickle.dumps(raised.value))
    assert (str(sent), sent.name) == (str(raised.value), name)
    mgpu.stub.hipstub_set_fault(b"")
    scale(kernels())
    assert mgpu.stub.hipstub_live(b"streams") == 1
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(policies=("builtin",))
def test_an_error_from_before_is_not_the_launchs(mgpu: Mgpu) -> None:
    module = kernels()
    scale(module)
    for options in ({}, {"stream": 0}):
        mgpu.launch(mgpu.null)
        scale(module, **options)
    mgpu.launch(mgpu.null)
    assert module["add"]
    mgpu.launch(mgpu.null)
    assert kernels()


@in_child(policies=("builtin",), backends=("softgpu",))
def test_a_refused_launch_raises(mgpu: Mgpu) -> None:
    with pytest.raises(mgpu_rt.HipError, match="kernel 'scale' was not launched"):
        scale(kernels(), shared=1 << 30)
