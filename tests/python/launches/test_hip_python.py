"""Tests mgpu_rt with hip-python's streams and device arrays, on softgpu."""

from __future__ import annotations

import os
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt._arrays.given import array_of
from mgpu_rt.runtime import Hip, Runtime
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import Mgpu, in_child
from tests.support.folders import folder

COUNT = 1000
on_softgpu = {"policies": ("builtin",), "backends": ("softgpu",)}


@pytest.mark.parametrize(("name", "size"), [("float32", 4), ("uint8", 1), ("B", 1), ("d", 8)])
def test_types_by_their_names_are_known(name: str, size: int) -> None:
    interface = {"shape": (3,), "typestr": name, "data": (0x1000, False), "version": 3}
    array = array_of(type("Array", (), {"__cuda_array_interface__": interface})())
    assert array and array.itemsize == size


def bound() -> Any:
    """Makes hip-python use the HIP that is already loaded, by ROCM_PATH."""
    mgpu_rt.load()
    library = folder("rocm") / "lib" / "libamdhip64.so"
    library.parent.mkdir()
    library.symlink_to(Hip.of_process().path)
    os.environ["ROCM_PATH"] = str(library.parent.parent)
    from rocm.bindings import hip

    return hip


def good(answer: tuple) -> Any:
    error, *results = answer
    assert int(error) == 0
    return results[0] if results else None


@in_child(**on_softgpu)
def test_its_streams_are_lent(mgpu: Mgpu) -> None:
    stream = good(bound().hipStreamCreate())
    with mgpu_rt.use_stream(int(stream)):
        mine = mgpu.StreamCreate()
        assert int(mgpu.ffi.cast("uintptr_t", mine)) == int(stream)
        mgpu.StreamDestroy(mine)


@in_child(**on_softgpu)
def test_its_device_arrays_are_arguments(mgpu: Mgpu) -> None:
    """On a stream of hip-python, the test passes device arrays as memrefs and as addresses."""
    hip = bound()
    host = numpy.arange(COUNT, dtype="f4")
    on, block = good(hip.hipStreamCreate()), good(hip.hipMalloc(host.nbytes))
    good(hip.hipMemcpy(block, host, host.nbytes, hip.hipMemcpyKind.hipMemcpyHostToDevice))
    kernels = mgpu_rt.Module(lower.lower(KERNELS, llvm=22))
    scale, stream = kernels["scale"], int(on)
    array = block.configure(typestr="float32", shape=(COUNT,))
    scale(4, 256, mgpu_rt.MemRef(array), 2.0, COUNT, stream=stream)
    pointer = int(block)  # an address without an array
    scale(4, 256, pointer, pointer, 0, COUNT, 1, 2.0, COUNT, stream=stream)
    good(hip.hipStreamSynchronize(on))
    result = numpy.empty_like(host)
    good(hip.hipMemcpy(result, block, host.nbytes, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
    assert (result == 4 * host).all()
    assert mgpu.stderr() == ""


class InHipPython(Runtime):
    """A runtime that returns hip-python's objects, and passes integer handles to hip-python."""

    def __init__(self) -> None:
        super().__init__()
        self.hip = bound()
        self.kept: list[Any] = []

    def stream_create(self) -> Any:
        self.kept.append(good(self.hip.hipStreamCreate()))
        return self.kept[-1]

    def stream_synchronize(self, stream: int) -> None:
        good(self.hip.hipStreamSynchronize(stream))

    def stream_destroy(self, stream: int) -> None:
        good(self.hip.hipStreamDestroy(stream))

    def mem_alloc(self, size: int, stream: int, host_shared: bool) -> Any:
        return good(self.hip.hipMalloc(size))

    def mem_free(self, address: int, stream: int) -> None:
        good(self.hip.hipFree(address))


@in_child(**on_softgpu)
def test_a_runtime_may_return_its_objects(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(InHipPython()) as runtime:
        stream = mgpu.StreamCreate()
        assert int(mgpu.ffi.cast("uintptr_t", stream)) == int(runtime.kept[0])
        block = mgpu.MemAlloc(64, stream, False)
        buffer = runtime.buffer_at(int(mgpu.ffi.cast("uintptr_t", block)) + 4)
        assert buffer and buffer.size == 64
        mgpu.StreamSynchronize(stream)
        mgpu.MemFree(block, stream)
        mgpu.StreamDestroy(stream)
    assert mgpu.stderr() == ""
