"""HIP failures that the ABI does not return become exceptions."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

import mgpu_rt
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import Mgpu, in_child

INVALID_VALUE, NOT_FOUND = 1, 500


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


@in_child(policies=("builtin",))
def test_each_thread_has_its_error(mgpu: Mgpu) -> None:
    thread = threading.Thread(target=lambda: mgpu.launch(mgpu.null))
    thread.start()
    thread.join()
    assert error(mgpu) is None


@in_child(policies=("builtin",), MGPU_RT_HIP="/nowhere/libamdhip64.so")
def test_a_launch_without_hip_has_an_error(mgpu: Mgpu) -> None:
    mgpu.launch(mgpu.null)
    assert error(mgpu) == "hipErrorSharedObjectInitFailed"


def test_an_error_goes_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(mgpu_rt.HipError("", 0, "hipErrorInvalidValue", "it failed")))
    assert isinstance(sent, mgpu_rt.HipError)
    assert (str(sent), sent.name) == ("it failed", "hipErrorInvalidValue")


def kernels() -> mgpu_rt.Module:
    return mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))


def scale(module: mgpu_rt.Module, **options: Any) -> None:
    module["scale"](1, 8, 64, 64, 0, 8, 1, 2.0, 8, **options)


def fails(mgpu: Mgpu, fault: str, words: str, name: str) -> None:
    """Launches a kernel with an injected fault. The fault affects one launch only; the next launch
    succeeds."""
    module = kernels()
    scale(module)
    mgpu.stub.hipstub_set_fault(fault.encode())
    with pytest.raises(mgpu_rt.HipError, match=words) as raised:
        scale(module)
    assert raised.value.name == name
    assert isinstance(raised.value, RuntimeError)
    mgpu.stub.hipstub_set_fault(b"")
    assert f"failed with '{name}'" in mgpu.stderr()
    scale(module)
    assert mgpu.stub.hipstub_live(b"streams") == 1
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(policies=("builtin",))
def test_a_failed_launch_raises(mgpu: Mgpu) -> None:
    fault = f"hipModuleLaunchKernel:*:{INVALID_VALUE}"
    fails(mgpu, fault, "kernel 'scale' was not launched", "hipErrorInvalidValue")


@in_child(policies=("builtin",))
def test_a_failed_kernel_raises(mgpu: Mgpu) -> None:
    fault = f"hipStreamSynchronize:*:{INVALID_VALUE}"
    fails(mgpu, fault, "kernel 'scale' failed", "hipErrorInvalidValue")


@in_child(policies=("builtin",), HIPSTUB_FAULT=f"hipModuleLoadData:1:{INVALID_VALUE}")
def test_a_failed_load_raises(mgpu: Mgpu) -> None:
    with pytest.raises(mgpu_rt.HipError, match="the image was not loaded: hipErrorInvalidValue"):
        kernels()
    scale(kernels())


@in_child(policies=("builtin",), HIPSTUB_FAULT=f"hipModuleGetFunction:1:{NOT_FOUND}")
def test_an_unknown_kernel_raises(mgpu: Mgpu) -> None:
    module = kernels()
    with pytest.raises(mgpu_rt.HipError, match="has no kernel 'scale': hipErrorNotFound"):
        _ = module["scale"]
    scale(module)


@in_child(policies=("builtin",), HIPSTUB_FAULT=f"hipStreamCreate:*:{INVALID_VALUE}")
def test_a_launch_without_a_stream_is_refused(mgpu: Mgpu) -> None:
    """The package does not launch the kernel, and does not use the null stream in place of the
    missing stream."""
    with pytest.raises(mgpu_rt.HipError, match="HIP created no stream"):
        scale(kernels())
    assert mgpu.count("hipModuleLaunchKernel") == 0


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
