"""The advice of Python's exceptions works when it is followed: code, advice, code that follows it.

One process runs all cases on the emulated device. tests/python/cli/test_advice.py has the advice of
commands and of the library in C.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.child import ROOT, environment
from tests.support.patience import run_process

pytestmark = pytest.mark.check

#: Runs before each case. `x` is 0 to 999, and `doubled` tells whether an array was doubled.
PRELUDE = """
import ctypes, fractions
import numpy, mgpu_rt
from mgpu_rt import In, InOut, Library, MemRef, Module, Out
functions = Library(mgpu_rt.lower("kernels.mlir"))
kernels = Module("kernels.o")
add, scale = kernels["add"], kernels["scale"]
x = numpy.arange(1000, dtype=numpy.float32)
y = numpy.arange(1000, dtype=numpy.float32)
frozen = numpy.arange(1000, dtype=numpy.float32)
frozen.flags.writeable = False
gaps = numpy.arange(2000, dtype=numpy.float32)[::2]
libm = next(line.split()[-1] for line in open("/proc/self/maps") if "/libm.so" in line)
def doubled(array, origin=x):
    return (numpy.asarray(array) == 2 * numpy.asarray(origin)).all()
"""

#: For each case: code that raises an exception, a part of its text, and code with the result True
#: that does as the text says.
ADVICE = {
    "a read-only array of a function": (
        "functions.scale_on_host(frozen, 2.0)",
        "pass a copy",
        "functions.scale_on_host(c := frozen.copy(), 2.0); result = doubled(c)",
    ),
    "an array with gaps": (
        "functions.scale_on_host(gaps, 2.0)",
        "pass numpy.ascontiguousarray(array)",
        "functions.scale_on_host(c := numpy.ascontiguousarray(gaps), 2.0)\n"
        "result = doubled(c, gaps)",
    ),
    "elements that are not aligned": (
        "raw = numpy.zeros(4001, 'u1')[1:].view('f4'); functions.scale_on_host(raw, 2.0)",
        "not aligned to 4 bytes: copy the array",
        "raw = numpy.ones(4001, 'u1')[1:].view('f4')\n"
        "functions.scale_on_host(c := raw.copy(), 2.0); result = doubled(c, raw)",
    ),
    "a read-only array of a kernel": (
        "scale(4, 256, MemRef(frozen), 2.0, 1000)",
        "pass mgpu_rt.In(array)",
        "add(4, 256, MemRef(In(frozen)), MemRef(In(frozen)), MemRef(Out(x)), 1000)\n"
        "result = doubled(x, frozen)",
    ),
    "a kernel's array with gaps": (
        "scale(4, 256, MemRef(gaps), 2.0, 1000)",
        "pass numpy.ascontiguousarray of it",
        "scale(4, 256, MemRef(c := numpy.ascontiguousarray(gaps)), 2.0, 1000)\n"
        "result = doubled(c, gaps)",
    ),
    "arrays that overlap": (
        "add(1, 256, MemRef(x[:9]), MemRef(x[:9]), MemRef(x[1:10]), 9)",
        "copy one of the two",
        "add(1, 256, MemRef(c := x[:9].copy()), MemRef(c), MemRef(x[1:10]), 9)\n"
        "result = doubled(x[1:10], c)",
    ),
    "an object": (
        "scale(4, 256, MemRef(x), fractions.Fraction(2), 1000)",
        "pass a number, an array, or bytes",
        "scale(4, 256, MemRef(x), float(fractions.Fraction(2)), 1000); result = doubled(x, y)",
    ),
    "an array of objects": (
        "scale(4, 256, numpy.array([object()]), *4 * [0], 2.0, 1000)",
        "give it a type of numbers",
        "scale(4, 256, MemRef(c := y.astype(object).astype('f4')), 2.0, 1000)\n"
        "result = doubled(c, y)",
    ),
    "big-endian elements": (
        "scale(4, 256, MemRef(y.astype('>f4')), 2.0, 1000)",
        "array.astype(array.dtype.newbyteorder('='))",
        "array = y.astype('>f4'); c = array.astype(array.dtype.newbyteorder('='))\n"
        "scale(4, 256, MemRef(c), 2.0, 1000); result = doubled(c, y)",
    ),
    "a mask": (
        "scale(4, 256, MemRef(numpy.ma.array(y)), 2.0, 1000)",
        "array.filled(value)",
        "scale(4, 256, MemRef(c := numpy.ma.array(y).filled(0)), 2.0, 1000); result = doubled(c)",
    ),
    "a type of device arrays": (
        "mgpu_rt.empty(10, 'float33')",
        "write one of ",
        "result = mgpu_rt.empty(10, 'float32').to_host().dtype == 'f4'",
    ),
    "no stream": (
        "with mgpu_rt.use_stream('mine'): pass",
        "or a hipStream_t as int",
        "with mgpu_rt.Stream() as stream, mgpu_rt.use_stream(stream.handle):\n"
        "    functions.scale_on_host(x, 2.0)\n"
        "result = doubled(x, y)",
    ),
    "not an image": (
        "Module(3)",
        "give bytes, or the path of an image's file",
        "result = 'scale' in repr(Module(open('kernels.o', 'rb').read())['scale'])",
    ),
    "a library without types": (
        "Library(libm).cos",
        "lower it by `mgpu-rt lower`, or give functions={...}",
        "result = Library(libm, functions={'cos': '(f64) -> f64'}).cos(0.0) == 1",
    ),
    "no type of a function": (
        "Library(libm, functions={'cos': 'f64'})",
        "write (memref<?xf32>, i32) -> f32",
        "result = Library(libm, functions={'cos': '(f64) -> f64'}).cos(0.0) == 1",
    ),
    "a result in registers": (
        "Library(mgpu_rt.lower('pair.mlir')).pair",
        "give the function the attribute llvm.emit_c_interface",
        "result = Library(mgpu_rt.lower('pairs.mlir')).pair(2) == (2, 3)",
    ),
    "a result in a copy": (
        "Library(mgpu_rt.lower('same.mlir')).same(InOut(x))",
        "pass mgpu_rt.to_device(array) instead",
        "same = Library(mgpu_rt.lower('same.mlir')).same\n"
        "result = (same(mgpu_rt.to_device(x)).to_host() == x).all()",
    ),
}

PAIR = """func.func @pair(%x: i32) -> (i32, i32) ATTRIBUTES {
  %one = arith.constant 1 : i32
  %more = arith.addi %x, %one : i32
  return %x, %more : i32, i32
}"""
C_INTERFACE = "attributes {llvm.emit_c_interface}"
PROGRAMS = {
    "kernels.mlir": (ROOT / "examples" / "python" / "kernels.mlir").read_text(),
    "pair.mlir": PAIR.replace("ATTRIBUTES", ""),
    "pairs.mlir": PAIR.replace("ATTRIBUTES", C_INTERFACE),
    "same.mlir": f"""func.func @same(%x: memref<?xf32>) -> memref<?xf32> {C_INTERFACE} {{
  return %x : memref<?xf32>
}}""",
}

#: Prints for each case the text of the exception, and the result of the code that follows it.
EACH = """
import json, subprocess, sys
command = [sys.executable, "-m", "mgpu_rt"]
subprocess.run([*command, "lower", "kernels.mlir", "-o", "kernels.o"], check=True)
prelude, cases = json.load(sys.stdin)
answers = {}
for name, (wrong, _, right) in cases.items():
    names = {"command": command}
    exec(prelude, names)
    try:
        exec(wrong, names)
        said = "no exception"
    except Exception as error:
        said = str(error)
    try:
        exec(right, names)
        answers[name] = said, bool(names["result"])
    except Exception as error:
        answers[name] = said, repr(error)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, bool | str]]:
    folder = tmp_path_factory.mktemp("advice")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    done = run_process(
        [sys.executable, "-c", EACH],
        environment("softgpu"),
        input=json.dumps((PRELUDE, ADVICE)),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", ADVICE)
def test_advice_of_an_exception_works(
    case: str, answers: dict[str, tuple[str, bool | str]]
) -> None:
    said, result = answers[case]
    assert ADVICE[case][1] in said
    assert result is True
