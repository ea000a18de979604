"""The kernel receives each kind of argument in the size that the kernel's image states."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt import In, MemRef
from mgpu_rt._images.model import Argument
from mgpu_rt._launch.arguments import Passed
from tests.support.child import Mgpu, in_child

POINTER = Argument(0, 8, "global_buffer")


def value(size: int) -> Argument:
    return Argument(0, size, "by_value")


def passed(parameters: Sequence[Argument], *arguments: Any) -> Passed:
    return Passed("kernel", parameters, arguments)


def content(parameter: Argument, argument: Any) -> bytes:
    """Returns the bytes that a kernel with this single parameter receives."""
    (found,) = passed([parameter], argument).values
    return found


def number(argument: Any) -> int:
    """Returns the address that a kernel receives."""
    return int.from_bytes(content(POINTER, argument), "little")


RECORD = numpy.dtype([("number", "i4"), ("object", "O")])


class Interface:
    """A device array that supports __cuda_array_interface__."""

    def __init__(self, address: int | None, shape: tuple[int, ...], **more: Any) -> None:
        said = {"data": (address, False), "shape": shape, "typestr": "<f4", "version": 3}
        self.__cuda_array_interface__ = said | more


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
        (value(1), 1.5, TypeError, "1.5 is a float; the parameter has 1 bytes"),
        (value(12), 3, TypeError, "3 is an int; the parameter has 12 bytes: pass bytes"),
        (value(4), numpy.float64(1), TypeError, "has 8 bytes; the kernel takes 4"),
        (value(12), b"three", TypeError, "has 5 bytes; the kernel takes 12"),
        (value(8), Interface(64, (2,)), TypeError, "takes 8 bytes by value, no array"),
        (value(4), None, TypeError, "takes 4 bytes by value, no array"),
        (value(4), "text", TypeError, "a str cannot be an argument"),
        (value(4), {}, TypeError, "a dict cannot be an argument"),
        (POINTER, 1.5, TypeError, "1.5 is a float; the kernel takes a pointer"),
        (POINTER, numpy.zeros(4), TypeError, "the host.* pass mgpu_rt.to_device"),
        (POINTER, In(numpy.zeros(4)), TypeError, "memory of the host"),
        (POINTER, bytearray(4), TypeError, "memory of the host"),
        (POINTER, numpy.array([None]), TypeError, "the type 'object' are no argument"),
        (POINTER, numpy.zeros(3, RECORD), TypeError, "are no argument"),
        (POINTER, memoryview(numpy.zeros(3, RECORD)), TypeError, "cannot be an argument"),
        (POINTER, In(3), TypeError, "In takes an array, not 3"),
        (POINTER, MemRef(3), TypeError, "has no shape, so no memref"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    parameter: Argument, argument: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"kernel 'kernel', argument 1: .*{words}"):
        passed([parameter], argument)


def test_a_wrong_count_is_refused() -> None:
    for count in (0, 1, 3):
        with pytest.raises(TypeError, match=f"'kernel' takes 2 arguments, and got {count}"):
            passed([value(4), value(4)], *range(count))
    with pytest.raises(TypeError, match=r"mgpu_rt.MemRef\(array\)"):
        passed([POINTER, POINTER, value(8), value(8), value(8)], Interface(64, (3,)))
    with pytest.raises(TypeError, match=r"takes 4 arguments, and got 5$"):
        passed([POINTER, POINTER, value(8), value(8)], MemRef(Interface(64, (3,))))


# ---- addresses ----


@pytest.mark.parametrize(
    "argument",
    [
        0x1234,
        numpy.uint64(0x1234),
        ctypes.c_void_p(0x1234),
        Interface(0x1234, (3,)),
        In(Interface(0x1234, (3,))),
    ],
)
def test_addresses_are_passed_as_they_are(argument: Any) -> None:
    assert number(argument) == 0x1234


def test_none_is_the_null_pointer() -> None:
    assert number(None) == number(Interface(None, (0,))) == number(Interface(0, (0,))) == 0


@in_child(policies=("builtin",))
def test_a_launch_waits_for_the_owners_stream(mgpu: Mgpu) -> None:
    """A launch waits once for each distinct stream of the arrays; the number 1 in
    __cuda_array_interface__ means the null stream."""
    mine, other = mgpu_rt.Stream(), mgpu_rt.Stream()
    streams = (other.handle, other.handle, 1, mine.handle, None)
    arrays = [Interface(64, (3,), stream=stream) for stream in streams]
    given = Passed("kernel", [POINTER] * 5, arrays)
    given.uses.precede(mine.handle)
    assert mgpu.count("hipEventRecord") == mgpu.count("hipStreamWaitEvent") == 2


# ---- memrefs ----


def memref(argument: Any, rank: int) -> tuple[int, ...]:
    given = passed([POINTER, POINTER, *[value(8)] * (1 + 2 * rank)], MemRef(argument))
    return tuple(struct.unpack("<q", content)[0] for content in given.values)


def test_device_memrefs_have_sizes_and_strides() -> None:
    assert memref(Interface(64, (2, 3)), 2) == (64, 64, 0, 2, 3, 3, 1)
    assert memref(Interface(64, (2, 3), strides=(40, 8)), 2) == (64, 64, 0, 2, 3, 10, 2)
    assert memref(Interface(64, ()), 0) == (64, 64, 0)


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
