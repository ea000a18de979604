"""The kernel receives each kind of argument in the size that the kernel's image states."""

from __future__ import annotations

import array
import ctypes
import functools
import gc
import struct
import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from cffi import FFI

from mgpu_rt import In, InOut, MemRef, Out
from mgpu_rt._images.model import Argument
from mgpu_rt._launch.arguments import Passed
from mgpu_rt._launch.arrays import _pointer_of, _Tensor

POINTER = Argument(0, 8, "global_buffer")
STREAM = 0x5000


def value(size: int) -> Argument:
    return Argument(0, size, "by_value")


class Device:
    """Imitates the library's functions that handle arguments. The first allocation has the address
    0x10000."""

    def __init__(self) -> None:
        self.ffi = FFI()
        self.ffi.cdef("typedef struct s *hipStream_t;")
        self.calls: list[tuple[Any, ...]] = []

    def mgpuMemAlloc(self, size: int, *_: Any) -> Any:
        self.calls.append(("alloc", size))
        return self.ffi.cast("void *", 0x10000 * len(self.calls))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("mgpu"):
            raise AttributeError(name)
        return functools.partial(self._note, name)

    def _note(self, name: str, *words: Any) -> Any:
        numbers = [w if isinstance(w, int) else int(self.ffi.cast("uintptr_t", w)) for w in words]
        self.calls.append((name.removeprefix("mgpu"), *numbers))
        return self.ffi.NULL

    def check(self, failure: str) -> None:
        pass


def passed(
    parameters: Sequence[Argument] | None, *arguments: Any, on: Device | None = None
) -> tuple[Passed, Device]:
    device = on or Device()
    stream = device.ffi.cast("hipStream_t", STREAM)
    return Passed(device, "kernel", parameters, arguments, stream), device  # type: ignore[arg-type]


def content(parameter: Argument, argument: Any) -> bytes:
    """Returns the bytes that a kernel with this single parameter receives."""
    given, device = passed([parameter], argument)
    given.to_device()
    params = given.params
    assert len(params) == 1
    return bytes(device.ffi.buffer(params[0], parameter.size))


def number(argument: Any) -> int:
    """Returns the address that a kernel receives."""
    return int.from_bytes(content(POINTER, argument), "little")


#: If a record were copied to the device and back, the references in the field `object` would be
#: lost.
RECORD = numpy.dtype([("number", "i4"), ("object", "O")])
SHORT = {"shape": (4,), "typestr": "|u1", "version": 3, "data": b"abc"}
BITS = {"shape": (4,), "typestr": "|t8", "version": 3, "data": b"abcd"}


# ---- values ----


@pytest.mark.parametrize(
    ("size", "argument", "form"),
    [
        (1, 255, "B"),
        (1, -128, "b"),
        (1, True, "B"),
        (2, -32768, "h"),
        (4, -5, "i"),
        (4, 0xFFFFFFFF, "I"),
        (8, 5_000_000_000, "q"),
        (8, (1 << 64) - 1, "Q"),
        (2, 1.5, "e"),
        (4, 1.5, "f"),
        (8, 1.5, "d"),
        (4, float("inf"), "f"),
        (4, numpy.int32(-5), "i"),
        (4, numpy.float32(1.5), "f"),
        (8, numpy.float64(1.5), "d"),
        (2, numpy.float16(1.5), "e"),
        (1, numpy.bool_(True), "?"),
        (4, ctypes.c_float(1.5), "f"),
        (8, ctypes.c_int64(-5), "q"),
    ],
)
def test_numbers_get_the_size_of_the_parameter(size: int, argument: Any, form: str) -> None:
    plain = getattr(argument, "value", argument)
    assert content(value(size), argument) == struct.pack("<" + form, plain)


def test_values_with_a_size_keep_their_bytes() -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("left", ctypes.c_int32), ("right", ctypes.c_double))

    assert content(value(12), b"twelve bytes") == b"twelve bytes"
    assert content(value(16), Pair(3, 1.5)) == bytes(Pair(3, 1.5))
    assert content(value(8), numpy.complex64(1 + 2j)) == struct.pack("<2f", 1, 2)
    pair = numpy.array((3, 1.5), dtype="i4,f4")[()]
    assert content(value(8), pair) == struct.pack("<if", 3, 1.5)


@pytest.mark.parametrize(
    ("parameter", "argument", "error", "words"),
    [
        (value(4), 1 << 32, ValueError, "4294967296 does not fit in the parameter's 4 bytes"),
        (value(1), -129, ValueError, "-129 does not fit in the parameter's 1 bytes"),
        (value(4), 1e40, ValueError, "does not fit in the parameter's 4 bytes"),
        (value(1), 1.5, TypeError, "1.5 is a float; the kernel takes 1 bytes"),
        (value(12), 3, TypeError, "3 is an int; the kernel takes 12 bytes: pass bytes"),
        (value(4), numpy.float64(1), TypeError, "has 8 bytes; the kernel takes 4"),
        (value(12), b"three", TypeError, "has 5 bytes; the kernel takes 12"),
        (value(8), numpy.zeros(2), TypeError, "takes 8 bytes by value, no array"),
        (value(4), None, TypeError, "takes 4 bytes by value, no array"),
        (value(4), "text", TypeError, "a str cannot be an argument"),
        (value(4), {}, TypeError, "a dict cannot be an argument"),
        (POINTER, 1.5, TypeError, "1.5 is a float; the kernel takes a pointer"),
        (POINTER, numpy.zeros(4)[::2], ValueError, "numpy.ascontiguousarray"),
        (POINTER, numpy.zeros(4, "f4,i2")["f0"], ValueError, "numpy.ascontiguousarray"),
        (POINTER, memoryview(b"abcd")[::2], ValueError, "numpy.ascontiguousarray"),
        (POINTER, numpy.array([None]), TypeError, "array of Python objects"),
        (POINTER, numpy.zeros(3, RECORD), TypeError, "array of Python objects"),
        (POINTER, numpy.zeros(3, [("in", RECORD, 2)]), TypeError, "array of Python objects"),
        (POINTER, memoryview(numpy.zeros(3, RECORD)), TypeError, "cannot be an argument"),
        (POINTER, (ctypes.py_object * 3)(), TypeError, "array of Python objects"),
        (value(8), ctypes.py_object(), TypeError, "Python object cannot be an argument"),
        (value(12), numpy.zeros(1, RECORD)[0], TypeError, "Python object cannot be an argument"),
        (POINTER, SimpleNamespace(__array_interface__=SHORT), ValueError, "its buffer has 3"),
        (
            POINTER,
            SimpleNamespace(__array_interface__=BITS),
            TypeError,
            r"type '\|t8' not understood",
        ),
        (POINTER, memoryview(b"abcd"), ValueError, r"read-only: pass mgpu_rt.In\(array\)"),
        (POINTER, In(3), TypeError, "In takes an array, not 3"),
        (POINTER, MemRef(3), TypeError, "has no shape, so no memref"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    parameter: Argument, argument: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"kernel 'kernel', argument 1: .*{words}"):
        passed([parameter], argument)


@pytest.mark.parametrize("count", (0, 1, 3))
def test_a_wrong_count_is_refused(count: int) -> None:
    with pytest.raises(TypeError, match=f"'kernel' takes 2 arguments, and got {count}"):
        passed([value(4), value(4)], *range(count))


def test_a_wrong_count_of_memrefs_is_refused() -> None:
    with pytest.raises(TypeError, match=r"mgpu_rt.MemRef\(array\)"):
        passed([POINTER, POINTER, value(8), value(8), value(8)], numpy.zeros(3))
    with pytest.raises(TypeError, match=r"takes 4 arguments, and got 5$"):
        passed([POINTER, POINTER, value(8), value(8)], MemRef(numpy.zeros(3)))


def test_without_a_description_values_state_their_sizes() -> None:
    """If the image does not describe the arguments, each value must have a known size, and a launch
    accepts any number of arguments."""
    given, device = passed(None, numpy.int16(3), MemRef(numpy.zeros(3)), ctypes.c_float(1.5))
    assert len(given.params) == 7
    assert bytes(device.ffi.buffer(given.params[4], 8)) == struct.pack("<q", 3)
    with pytest.raises(TypeError, match="argument 2: the image does not give the parameter's size"):
        passed(None, 0.5 * numpy.float32(1), 3)


# ---- addresses ----


class Interface:
    """A device array that supports __cuda_array_interface__."""

    def __init__(self, address: int | None, shape: tuple[int, ...], **more: Any) -> None:
        said = {"data": (address, False), "shape": shape, "typestr": "<f4", "version": 3}
        self.__cuda_array_interface__ = said | more


class Tensor:
    """A NumPy array that reports one of DLPack's devices as its location."""

    def __init__(self, array: numpy.ndarray, device: int) -> None:
        self.array, self.device = array, device
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, *, stream: Any) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()


@pytest.mark.parametrize(
    "argument",
    [
        0x1234,
        numpy.uint64(0x1234),
        ctypes.c_void_p(0x1234),
        FFI().cast("float *", 0x1234),
        Interface(0x1234, (3,)),
        In(Interface(0x1234, (3,))),
        SimpleNamespace(data_ptr=lambda: 0x1234),
    ],
)
def test_addresses_are_passed_as_they_are(argument: Any) -> None:
    assert number(argument) == 0x1234


def test_none_is_the_null_pointer() -> None:
    assert number(None) == number(Interface(None, (0,))) == number(Interface(0, (0,))) == 0


@pytest.mark.parametrize(("device", "stream"), [(2, STREAM), (10, STREAM), (13, STREAM)])
def test_dlpack_gets_the_stream_of_use(device: int, stream: int) -> None:
    """The library passes the launch's stream to the array's owner, through DLPack."""
    array = numpy.zeros((3, 4), "f")
    tensor = Tensor(array[1:], device)
    assert number(tensor) == array.ctypes.data + 16
    assert tensor.streams == [stream]


def test_dlpack_without_strides_is_dense() -> None:
    """The tensor has an offset but no strides, so the elements are contiguous in row-major order. A
    DLPack tensor from NumPy has strides but no offset."""

    class Terse(Tensor):
        def __dlpack__(self, *, stream: Any) -> Any:
            capsule = super().__dlpack__(stream=stream)
            tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
            tensor.strides, tensor.byte_offset = None, 16
            return capsule

    array = numpy.zeros((3, 4), "f")
    begin = array.ctypes.data + 16
    assert memref(Terse(array, 10), 2) == (begin, begin, 0, 3, 4, 4, 1)


def test_dlpack_keeps_what_it_hands_out() -> None:
    """The launch keeps the array alive until the launch ends, and no longer."""
    made: list[weakref.ref[Any]] = []

    class Lazy(Tensor):
        def __dlpack__(self, *, stream: Any) -> Any:
            array = numpy.zeros(3)
            made.append(weakref.ref(array))
            return array.__dlpack__()

    given = passed([POINTER], Lazy(numpy.zeros(3), 10))
    assert made[0]() is not None
    del given
    gc.collect()
    assert made[0]() is None


@pytest.mark.parametrize(("device", "stream"), [(2, 1), (10, 0)])
def test_dlpacks_null_stream_is_hips(device: int, stream: int) -> None:
    tensor, library = Tensor(numpy.zeros(3), device), Device()
    Passed(library, "kernel", [POINTER], [tensor], library.ffi.NULL)  # type: ignore[arg-type]
    assert tensor.streams == [stream]


def test_dlpack_on_the_host_is_copied() -> None:
    """PyTorch's tensor is in host memory, so its data_ptr() is not an address on the device."""
    tensor = Tensor(numpy.zeros(3), 1)
    tensor.data_ptr = lambda: 0x1234  # type: ignore[attr-defined]
    given, device = passed([POINTER], tensor)
    given.to_device()
    address = tensor.array.ctypes.data
    assert device.calls == [("alloc", 24), ("Memcpy", 0x10000, address, 24, STREAM)]
    with pytest.raises(ValueError, match="with gaps between its elements"):
        passed([POINTER], Tensor(numpy.zeros(6)[::2], 1))
    with pytest.raises(TypeError, match="on DLPack's device 7"):
        passed([POINTER], Tensor(numpy.zeros(3), 7))


def test_a_launch_waits_for_the_owners_stream() -> None:
    """A launch waits once for each distinct stream of the arrays; the number 1 in
    __cuda_array_interface__ means the null stream."""
    arrays = [Interface(64, (3,), stream=stream) for stream in (0x77, 0x77, 1, STREAM, None)]
    given, device = passed([POINTER] * 5, *arrays)
    given.to_device()
    waited = [words[2] for words in device.calls if words[0] == "EventRecord"]
    assert sorted(waited) == [0, 0x77]
    assert [words[1] for words in device.calls if words[0] == "StreamWaitEvent"] == [STREAM] * 2
    assert sum(words[0] == "EventDestroy" for words in device.calls) == 2


# ---- memrefs ----


def memref(argument: Any, rank: int) -> tuple[int, ...]:
    parameters = [POINTER, POINTER, *[value(8)] * (1 + 2 * rank)]
    given, device = passed(parameters, MemRef(argument))
    given.to_device()
    return tuple(
        struct.unpack("<q", bytes(device.ffi.buffer(param, 8)))[0] for param in given.params
    )


def test_device_memrefs_have_sizes_and_strides() -> None:
    assert memref(Interface(64, (2, 3)), 2) == (64, 64, 0, 2, 3, 3, 1)
    assert memref(Interface(64, (2, 3), strides=(40, 8)), 2) == (64, 64, 0, 2, 3, 10, 2)
    assert memref(Interface(64, ()), 0) == (64, 64, 0)
    array = numpy.zeros((4, 6), "f")[:, ::2]
    begin = array.ctypes.data
    assert memref(Tensor(array, 10), 2) == (begin, begin, 0, 4, 3, 6, 2)


def test_a_field_of_records_on_the_device_has_its_stride() -> None:
    """A field of a record array has an address, but a memref also needs strides that are multiples
    of the element's size."""
    field = Interface(64, (4,), strides=(6,))
    assert number(field) == 64
    with pytest.raises(
        ValueError, match="argument 1: the elements are 6 bytes apart, which is not a multiple"
    ):
        memref(field, 1)
    assert memref(Interface(64, (1,), strides=(6,)), 1) == (64, 64, 0, 1, 1)


def test_host_memrefs_have_sizes_and_strides() -> None:
    place = memref(numpy.zeros((2, 3), "f"), 2)[0]
    assert memref(numpy.zeros((2, 3), "f"), 2) == (place, place, 0, 2, 3, 3, 1)
    assert memref(numpy.zeros((2, 3), "f", order="F"), 2) == (place, place, 0, 2, 3, 1, 2)
    assert memref(In(array.array("d", [1, 2])), 1) == (place, place, 0, 2, 1)


# ---- host arrays ----


def moved(*arguments: Any) -> list[tuple[Any, ...]]:
    """Passes host arrays to a launch; returns the allocations, copies and frees that the library
    makes."""
    given, device = passed([POINTER] * len(arguments), *arguments)
    assert given.copies
    given.to_device()
    given.copies.to_host()
    given.copies.release()
    given.copies.release()
    return device.calls


def test_in_and_out_leave_out_one_copy() -> None:
    data = numpy.arange(4, dtype="f")
    host, place, size = data.ctypes.data, 0x10000, data.nbytes
    up, down = ("Memcpy", place, host, size, STREAM), ("Memcpy", host, place, size, STREAM)
    alloc, free = ("alloc", size), ("MemFree", place, STREAM)
    assert moved(data) == moved(InOut(data)) == [alloc, up, down, free]
    assert moved(In(data)) == [alloc, up, free]
    assert moved(Out(data)) == [alloc, down, free]


def test_one_array_twice_is_one_copy() -> None:
    data = numpy.arange(4, dtype="f")
    copies = moved(In(data), Out(data.view()))
    assert [words[0] for words in copies] == ["alloc", "Memcpy", "Memcpy", "MemFree"]


def test_overlapping_arrays_are_refused() -> None:
    data = numpy.arange(8, dtype="f")
    with pytest.raises(ValueError, match="argument 2: the array overlaps another array"):
        passed([POINTER] * 2, In(data[:5]), data[4:])
    assert len(moved(In(data[:5]), In(data[4:]))) == 6
    assert len(moved(data[:4], data[4:])) == 8
    assert len(moved(data, data[4:4])) == 6


def test_empty_arrays_are_accepted() -> None:
    assert not any(words[0] == "Memcpy" for words in moved(numpy.zeros(0, "f")))
    assert not any(words[0] == "Memcpy" for words in moved(bytearray()))


def test_any_buffer_is_copied() -> None:
    for buffer in (bytearray(8), array.array("i", [1, 2]), (ctypes.c_int * 2)(1, 2)):
        assert moved(buffer)[0] == ("alloc", 8)


class Picture:
    """Imitates an image of PIL, which has no strides and no itemsize, and which creates the bytes
    on request."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": (2, 3), "typestr": "|u1", "version": 3, "data": bytes(range(6))}


def test_arrays_may_leave_out_what_has_a_default() -> None:
    place = memref(In(Picture()), 2)[0]
    assert memref(In(Picture()), 2) == (place, place, 0, 2, 3, 3, 1)
    with pytest.raises(ValueError, match=r"read-only: pass mgpu_rt.In\(array\)"):
        passed([POINTER], Picture())
    whole = {"shape": (2,), "typestr": "<f4", "version": 3, "offset": 4, "data": bytearray(12)}
    given, device = passed([POINTER], SimpleNamespace(__array_interface__=whole))
    given.to_device()
    assert ("alloc", 8) in device.calls
    moments = numpy.zeros(2, "M8[ns]")
    assert number(SimpleNamespace(__array_interface__=moments.__array_interface__))


def test_dates_are_accepted_without_a_buffer() -> None:
    """NumPy offers no buffer for an array of dates, but knows the array's address."""
    assert moved(numpy.zeros(3, "M8[s]"))[0] == ("alloc", 24)
