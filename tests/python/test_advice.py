"""The advice of Python's exceptions works when it is followed: code, advice, code that follows it.

Advice that names no more than a type or a function is tested with the exception itself.
tests/python/cli/test_advice.py has the advice of commands and of the library in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt import Library, MemRef
from mgpu_rt._launch.arguments import Argument, _encode
from mgpu_rt.hooks import LaunchHook
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import Mgpu, in_child

pytestmark = pytest.mark.check

PAIR = """func.func @pair(%x: i32) -> (i32, i32) ATTRIBUTES {
  %one = arith.constant 1 : i32
  %more = arith.addi %x, %one : i32
  return %x, %more : i32, i32
}"""
C_INTERFACE = "attributes {llvm.emit_c_interface}"
FIRST = f"""func.func @first(%x: memref<?xf32, strided<[?]>>) -> f32 {C_INTERFACE} {{
  %c0 = arith.constant 0 : index
  %first = memref.load %x[%c0] : memref<?xf32, strided<[?]>>
  return %first : f32
}}"""
HALF = """func.func @half(%x: f16) -> f32 {
  %wide = arith.extf %x : f16 to f32
  return %wide : f32
}"""
HALF_OF_F32 = HALF.replace("%x: f16", "%given: f32").replace(
    "  %wide", "  %x = arith.truncf %given : f32 to f16\n  %wide", 1
)
BIG = numpy.arange(1000, dtype=">f4")
MASKED = numpy.ma.array(numpy.arange(1000, dtype="f4"))
GAPS = numpy.arange(2000, dtype="f4")[::2]
ODD = numpy.ones(9, "f4,u1")["f0"]
UNALIGNED = numpy.ones(4001, "u1")[1:].view("f4")
UNKNOWN = Argument(None, None, None)


def libm() -> str:
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if "/libm.so" in line)


def scaled(array: numpy.ndarray) -> bool:
    """Returns whether a kernel doubles the array."""
    device = mgpu_rt.to_device(array)
    kernel = mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))["scale"]
    kernel(4, 256, MemRef(device), 2.0, len(array))
    return (device.to_host() == 2 * array).all()


def scaled_on_host(array: numpy.ndarray) -> bool:
    wanted = 2 * array
    Library(mgpu_rt.lower(KERNELS)).scale_on_host(array, 2.0)
    return (array == wanted).all()


def hooked(method: str) -> bool:
    """Returns whether a hook with a method of this name sees a launch."""
    seen: list[object] = []
    hook = type("Mine", (LaunchHook,), {method: lambda self, launch: seen.append(launch)})()
    with mgpu_rt.intercept(hook):
        scaled(numpy.arange(1000, dtype="f4"))
    return bool(seen)


Code = Callable[[], Any]
#: For each case: code that raises an exception, a part of its text, and code with the result True
#: that does as the text says.
ADVICE: dict[str, tuple[Code, str, Code]] = {
    "a parameter whose size the image lacks": (
        lambda: _encode(5, UNKNOWN),
        "pass 5 as bytes",
        lambda: _encode(bytes([5]), UNKNOWN) == bytes([5]),
    ),
    "elements that are not aligned": (
        lambda: scaled_on_host(UNALIGNED),
        "not aligned to 4 bytes: copy the array",
        lambda: scaled_on_host(UNALIGNED.copy()),
    ),
    "an array with gaps for the device": (
        lambda: scaled(GAPS),
        "pass numpy.ascontiguousarray(array)",
        lambda: scaled(numpy.ascontiguousarray(GAPS)),
    ),
    "big-endian elements": (
        lambda: scaled(BIG),
        "array.astype(array.dtype.newbyteorder('='))",
        lambda: scaled(BIG.astype(BIG.dtype.newbyteorder("="))),
    ),
    "a mask": (
        lambda: scaled(MASKED),
        "array.filled(value)",
        lambda: scaled(MASKED.filled(0)),
    ),
    "elements at odd distances": (
        lambda: Library(mgpu_rt.lower(FIRST)).first(ODD),
        "copy the array, so that its elements are contiguous",
        lambda: Library(mgpu_rt.lower(FIRST)).first(ODD.copy()) == 1,
    ),
    "a type of device arrays by NumPy's short name": (
        lambda: mgpu_rt.empty(9, "f4"),
        "or pass a type of NumPy's, such as numpy.dtype('f4')",
        lambda: mgpu_rt.empty(9, numpy.dtype("f4")).to_host().dtype == "f4",
    ),
    "a library without types": (
        lambda: Library(libm()).cos,
        "lower it by `mgpu-rt lower`, or give functions={...}",
        lambda: Library(libm(), functions={"cos": "(f64) -> f64"}).cos(0.0) == 1,
    ),
    "a hook's method by a name that nothing calls": (
        lambda: hooked("on_lanch"),
        "nothing calls Mine.on_lanch: do you mean on_launch?",
        lambda: hooked("on_launch"),
    ),
    "a half as an argument": (
        lambda: Library(mgpu_rt.lower(HALF)).half(1.5),
        "let the function take an f32, and truncate it (arith.truncf)",
        lambda: Library(mgpu_rt.lower(HALF_OF_F32)).half(1.5) == 1.5,
    ),
    "a result in registers": (
        lambda: Library(mgpu_rt.lower(PAIR.replace("ATTRIBUTES", ""))).pair,
        "give the function the attribute llvm.emit_c_interface",
        lambda: Library(mgpu_rt.lower(PAIR.replace("ATTRIBUTES", C_INTERFACE))).pair(2) == (2, 3),
    ),
}


@in_child(policies=("builtin",), backends=("softgpu",))
def test_advice_of_exceptions_works(mgpu: Mgpu) -> None:
    for case, (wrong, words, right) in ADVICE.items():
        with pytest.raises((TypeError, ValueError, AttributeError)) as raised:
            wrong()
        assert words in str(raised.value), case
        assert right(), case
