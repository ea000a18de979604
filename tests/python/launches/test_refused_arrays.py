"""Arrays that a kernel would misread: masked, big-endian and read-only arrays, arrays that break
the protocol of their interface, and sizes that no memory has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt import In, MemRef
from tests.python.functions import DEVICE, library
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import Mgpu, in_child


def interface(**changes: Any) -> dict[str, Any]:
    return {"shape": (4,), "typestr": "<f4", "data": (0x1000, False), "version": 3, **changes}


def on_device(**changes: Any) -> Any:
    return SimpleNamespace(__cuda_array_interface__=interface(**changes))


def read_only() -> numpy.ndarray:
    array = numpy.zeros(4, "f4")
    array.flags.writeable = False
    return array


MASK = "has a mask, which no kernel sees: pass the array's data, or array.filled"
BIG = r"big-endian \('.*'\): convert the array, by array.astype"
READ_ONLY = r"the array is read-only"
NOWHERE = "does not fit|no memory has such an array"

REFUSED = {
    "masked": (numpy.ma.masked_array(numpy.zeros(4, "f4"), [0, 1, 0, 0]), TypeError, MASK),
    "masked, without a mask": (numpy.ma.masked_array(numpy.zeros(4, "f4")), TypeError, MASK),
    "mask of a device interface": (on_device(mask=on_device()), TypeError, MASK),
    "big-endian": (numpy.zeros(4, ">f4"), TypeError, BIG),
    "big-endian field": (numpy.zeros(4, [("a", "<i2"), ("b", ">i2")]), TypeError, BIG),
    "big-endian on the device": (on_device(typestr=">f4"), TypeError, BIG),
    "read-only": (read_only(), ValueError, READ_ONLY),
    "read-only on the device": (on_device(data=(0x1000, True)), ValueError, READ_ONLY),
    "address of 65 bits": (on_device(data=(1 << 64, False)), ValueError, NOWHERE),
}


@in_child(policies=("builtin",))
def test_a_launch_refuses_arrays_that_it_would_misread(mgpu: Mgpu) -> None:
    kernel = mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))["scale"]
    for array, error, words in REFUSED.values():
        with pytest.raises(error, match=f"kernel 'scale', argument 1: .*{words}"):
            kernel(1, 1, MemRef(array), 1.0, 4)
    assert mgpu.count("hipModuleLaunchKernel") == 0


@in_child(policies=("builtin",))
def test_a_function_refuses_arrays_that_it_would_misread(mgpu: Mgpu) -> None:
    functions = library(DEVICE)
    for array, error, words in REFUSED.values():
        with pytest.raises(error, match=f"scale, argument 1 .*{words}"):
            functions.scale(array, 1.0)
    assert mgpu.count("hipModuleLaunchKernel") == 0


@in_child(policies=("builtin",))
def test_a_device_array_takes_no_array_that_it_would_misread(mgpu: Mgpu) -> None:
    for array, error, words in REFUSED.values():
        if words not in (READ_ONLY, NOWHERE):
            with pytest.raises(error, match=words):
                mgpu_rt.to_device(array)
    assert mgpu_rt.to_device(read_only()).to_host().tolist() == [0] * 4  # only read


@in_child(policies=("builtin",))
def test_in_passes_a_read_only_array(mgpu: Mgpu) -> None:
    kernel = mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))["scale"]
    owner = mgpu_rt.empty(4)
    address = owner.__cuda_array_interface__["data"][0]
    array = on_device(data=(address, True))
    kernel(1, 1, MemRef(In(array)), 1.0, 4)
    library(DEVICE).scale(In(array), 1.0)
    library(DEVICE).scale(In(read_only()), 1.0)
    assert mgpu.count("hipModuleLaunchKernel") == 3
