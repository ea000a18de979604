"""Arrays that the package exports: their interfaces, their lifetimes, and their consumers."""

from __future__ import annotations

import ctypes
import gc
import threading
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt._arrays.arrays import DeviceArray
from mgpu_rt._arrays.work import Work
from mgpu_rt.runtime import Hip
from tests.support.child import Mgpu, in_child
from tests.support.patience import HANG

on_softgpu = in_child(policies=("builtin",), backends=("softgpu",))


class Owner:
    """An object that owns memory in this process, and records its own destruction."""

    def __init__(self, gone: list[int], size: int = 96) -> None:
        self.buffer = (ctypes.c_char * size)()
        self.address = ctypes.addressof(self.buffer)
        self._gone = gone

    def __del__(self) -> None:
        self._gone.append(self.address)


class Shared(DeviceArray):
    """An array whose memory is the host's, so that NumPy can read it."""

    def __init__(self, gone: list[int], kind: str = "f32", *form: Any) -> None:
        owner, work = Owner(gone), Work()
        work.is_shared = True
        super().__init__(owner, owner.address, kind, *(form or ((3, 4),)), work=work)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the host


KINDS = ("bool", "si8", "ui16", "si32", "ui64", "f16", "f32", "f64", "complex<f32>")


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_takes_an_array_without_a_copy(kind: str) -> None:
    gone: list[int] = []
    array = Shared(gone, kind)
    taken = numpy.from_dlpack(array)
    assert (taken.dtype.name, taken.shape) == (array.dtype, (3, 4))
    taken[1, 2] = 1
    assert taken.ctypes.data == array._array.address and numpy.from_dlpack(array)[1, 2] == 1
    del array
    gc.collect()
    assert gone == [] and taken[1, 2] == 1
    del taken
    gc.collect()
    assert len(gone) == 1


def test_a_capsule_that_nobody_takes_frees_its_memory() -> None:
    for options in ({}, {"max_version": (1, 0)}, {"max_version": (0, 8)}):
        gone: list[int] = []
        capsule = Shared(gone).__dlpack__(**options)
        gc.collect()
        assert gone == [] and "dltensor" in repr(capsule)
        del capsule
        gc.collect()
        assert len(gone) == 1


def test_a_capsule_ends_while_an_exception_is_on_its_way() -> None:
    gone: list[int] = []

    def fail() -> None:
        _capsule = Shared(gone).__dlpack__()
        raise KeyError("kept")

    with pytest.raises(KeyError, match="kept"):
        fail()
    gc.collect()
    assert len(gone) == 1


def test_a_consumer_frees_memory_on_any_thread() -> None:
    """The consumer calls the tensor's deleter without the GIL, as PyTorch does, and the deleter
    acquires the GIL."""
    gone: list[int] = []
    capsule = Shared(gone).__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = pointer_of(capsule, b"dltensor")
    taken = ctypes.create_string_buffer(b"used_dltensor")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), taken)
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p).from_address(address + 56)
    thread = threading.Thread(target=deleter, args=(address,))  # CFUNCTYPE releases the GIL
    thread.start()
    thread.join(HANG)
    assert len(gone) == 1
    del capsule
    gc.collect()
    assert len(gone) == 1


def test_another_device_or_a_copy_is_refused() -> None:
    array = Shared([])
    for options in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match="DLPack cannot copy"):
            array.__dlpack__(**options)
    assert array.__dlpack__(dl_device=(1, 0), copy=False)


def test_an_array_says_what_it_is() -> None:
    array = Shared([], "f32", ())
    assert (array.shape, array.nbytes, array.itemsize) == ((), 4, 4)
    assert numpy.from_dlpack(Shared([], "f32", (4, 3), (4, 16))).strides == (4, 16)
    with pytest.raises(AttributeError, match="cannot describe bfloat16: use DLPack"):
        _ = Shared([], "bf16").__cuda_array_interface__
    assert DeviceArray(None, 0, "f32", (2, 3)).strides == (12, 4)


def test_pytorch_takes_an_array_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    gone: list[int] = []
    for kind in ("f32", "bf16", "si64", "bool"):
        tensor = torch.from_dlpack(Shared(gone, kind))
        gc.collect()
        assert gone == [] and str(tensor.dtype) == f"torch.{Shared([], kind).dtype}"
        view = tensor[1:]
        del tensor
        view[0] = 1
        del view
        gc.collect()
        assert len(gone) == 1
        gone.clear()


# ---- on the device ----


@on_softgpu
def test_device_arrays_have_interfaces(mgpu: Mgpu) -> None:
    given = numpy.arange(12, dtype="i4").reshape(3, 4)
    array = mgpu_rt.to_device(given)
    interface = array.__cuda_array_interface__
    address = interface["data"][0]
    assert interface == {
        "shape": (3, 4),
        "typestr": "<i4",
        "strides": None,
        "data": (address, False),
        "version": 3,
        "stream": None,
    }
    assert array.__dlpack_device__() == (10, 0)  # ROCm's
    assert not hasattr(array, "__array_interface__")
    hip = Hip.of_process()
    assert [hip.device_of(each) for each in (address, address + 47)] == [0, 0]
    assert [hip.device_of(each) for each in (given.ctypes.data, 0)] == [None, None]
    assert (mgpu_rt.to_device(array).to_host() == given).all()  # from the device
    stream = mgpu_rt.Stream()
    for consumer in (None, 0, 1, -1, stream.handle):
        assert array.__dlpack__(stream=consumer)
    array.fill_on(stream.handle)
    with mgpu_rt.use_stream(stream):
        assert array.__cuda_array_interface__["stream"] == stream.handle
    assert array.__cuda_array_interface__["stream"] is None
    assert mgpu.stderr() == ""


@on_softgpu
def test_device_memory_lives_as_long_as_its_last_view(mgpu: Mgpu) -> None:
    def allocated() -> int:
        gc.collect()
        return mgpu_rt.stats()["memory"]["0"]["allocated"]

    array = mgpu_rt.empty(64)
    capsules = [array.__dlpack__(), array.__dlpack__(stream=-1, max_version=(1, 1))]
    del array
    assert allocated() == 256
    del capsules[0]
    assert allocated() == 256
    capsules.clear()
    assert allocated() == 0


@on_softgpu
def test_arrays_that_do_not_fit_are_refused(mgpu: Mgpu) -> None:
    array = mgpu_rt.empty((2, 3))
    for other, words in (
        (numpy.zeros((2, 3)), "takes only an array of equal shape and type, but"),
        (numpy.zeros((3, 2), "f4"), r"shape \(3, 2\)"),
        (numpy.zeros((3, 2), "f4").T, "have to lie one after the other"),
    ):
        with pytest.raises(ValueError, match=words):
            array.copy_from(other)
    for other, words in ((numpy.zeros(2, "M8[s]"), "the type '<M8"), (3, "a int is not an array")):
        with pytest.raises(TypeError, match=words):
            mgpu_rt.to_device(other)
    for dtype in (numpy.void, "i8"):  # MLIR's i8 has 8 bits, and NumPy's i8 has 64
        with pytest.raises(TypeError, match="is not a type of a device array: write one of bool"):
            mgpu_rt.empty(2, dtype)
    with pytest.raises(ValueError, match="has a negative size"):
        mgpu_rt.empty((2, -1))
    for shape in (1 << 61, (1 << 32, 1 << 32), 1 << 70):
        with pytest.raises(ValueError, match="bytes: no device has so much memory"):
            mgpu_rt.empty(shape)
    for dtype in ("float32", numpy.float32, numpy.dtype("f4"), "f32"):
        assert mgpu_rt.empty(2, dtype).dtype == "float32"
    assert mgpu_rt.empty(0).to_host().shape == (0,) and mgpu_rt.empty((3, 0)).nbytes == 0
    assert mgpu_rt.to_device(numpy.float32(2).reshape(())).to_host() == 2
    assert mgpu.stderr() == ""
