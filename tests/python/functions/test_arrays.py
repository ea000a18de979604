"""Arrays that the package exports: their interfaces, their lifetimes, and their consumers."""

from __future__ import annotations

import gc

import numpy
import pytest

import mgpu_rt
from mgpu_rt._arrays.arrays import DeviceArray
from mgpu_rt.runtime import Hip
from tests.support.child import Mgpu, in_child

on_softgpu = in_child(policies=("builtin",), backends=("softgpu",))


def test_an_array_says_what_it_is() -> None:
    array = DeviceArray(None, 0, "f32", ())
    assert (array.shape, array.nbytes, array.itemsize) == ((), 4, 4)
    with pytest.raises(AttributeError, match="cannot describe bfloat16"):
        _ = DeviceArray(None, 0, "bf16", (3, 4)).__cuda_array_interface__
    assert DeviceArray(None, 0, "f32", (2, 3)).strides == (12, 4)


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
    assert not hasattr(array, "__array_interface__")
    hip = Hip.of_process()
    assert [hip.device_of(each) for each in (address, address + 47)] == [0, 0]
    assert [hip.device_of(each) for each in (given.ctypes.data, 0)] == [None, None]
    assert (mgpu_rt.to_device(array).to_host() == given).all()  # from the device
    stream = mgpu_rt.Stream()
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
    assert array.__cuda_array_interface__["data"][0]
    views = [array, array]  # PyTorch and CuPy keep the array
    del array
    assert allocated() == 256
    del views[0]
    assert allocated() == 256
    views.clear()
    assert allocated() == 0


@on_softgpu
def test_numpy_refuses_an_array_in_device_memory(mgpu: Mgpu) -> None:
    """NumPy took it for one object, so that each comparison with it was false."""
    array, ones = mgpu_rt.to_device(numpy.ones(2, "f4")), numpy.ones(2, "f4")
    uses = (numpy.asarray, numpy.sum, lambda x: numpy.allclose(x, 1), lambda x: x == ones)
    for use in (*uses, lambda x: ones + x, lambda x: numpy.array(x, "f4", copy=True)):
        with pytest.raises(TypeError, match=r"in device memory>, which NumPy .* call to_host\(\)"):
            use(array)
    assert (array.to_host() == ones).all()


@on_softgpu
def test_arrays_that_do_not_fit_are_refused(mgpu: Mgpu) -> None:
    array = mgpu_rt.empty((2, 3))
    for other, words in (
        (numpy.zeros((2, 3)), "takes only an array of equal shape and type, but got float64, "),
        (numpy.zeros((3, 2), "f4"), r"shape \(3, 2\)"),
        (numpy.zeros((3, 2), "f4").T, "the elements have to lie one after"),
    ):
        with pytest.raises(ValueError, match=words):
            array.copy_from(other)
    not_array = r"a list is not an array: pass numpy.array\(...\) of it"
    for other, words in ((numpy.zeros(2, "M8[s]"), "the type '<M8"), ([3], not_array)):
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
    for shape in ((0, 3), (2, 0, 3)):
        assert mgpu_rt.to_device(numpy.zeros(shape, "f4")).to_host().shape == shape
    assert mgpu_rt.to_device(numpy.float32(2).reshape(())).to_host() == 2
    assert mgpu.stderr() == ""
