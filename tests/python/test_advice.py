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
from mgpu_rt import In, Library, MemRef, Module
from mgpu_rt._launch.arguments import Argument, _encode as encode
from mgpu_rt.manager import Evict
from mgpu_rt.manager._table import ffi, Table
write = Table._write
functions = Library(mgpu_rt.lower("kernels.mlir"))
kernels = Module("kernels.o")
add, scale = kernels["add"], kernels["scale"]
x = numpy.arange(1000, dtype=numpy.float32)
y = numpy.arange(1000, dtype=numpy.float32)
frozen = numpy.arange(1000, dtype=numpy.float32)
frozen.flags.writeable = False
z = mgpu_rt.to_device(x)  # on the device
gaps = numpy.arange(2000, dtype=numpy.float32)[::2]
libm = next(line.split()[-1] for line in open("/proc/self/maps") if "/libm.so" in line)
class Sets(mgpu_rt.runtime.Runtime):
    name, value, error = "grid", (1, 1, 1), None
    def launch_kernel(self, launch):
        try:
            setattr(launch, self.name, self.value)
            super().launch_kernel(launch)
        except Exception as error:
            self.error = error
def launched(name, value):
    sets = Sets()
    sets.name, sets.value = name, value
    with mgpu_rt.intercept(sets):
        scale(4, 256, MemRef(z), 2.0, 1000)
    if sets.error:
        raise sets.error
    return doubled(z)
def doubled(array, origin=y):
    on_host = array.to_host() if isinstance(array, mgpu_rt.DeviceArray) else array
    return (on_host == 2 * numpy.asarray(origin)).all()
"""

#: For each case: code that raises an exception, a part of its text, and code with the result True
#: that does as the text says.
ADVICE = {
    "a read-only array of a function": (
        "functions.scale_on_host(frozen, 2.0)",
        "pass mgpu_rt.In(array) if it is only read",
        "result = Library(mgpu_rt.lower('first.mlir')).first(In(frozen)) == 0",
    ),
    "a parameter whose size the image lacks": (
        "encode(5, Argument(None, None, None))",
        "pass 5 as bytes",
        "result = encode(bytes([5]), Argument(None, None, None)) == bytes([5])",
    ),
    "what is no decision of a policy": (
        "write(ffi.new('struct table_decision *'), 'evict')",
        "use Evict, Pin or Limit",
        "write(out := ffi.new('struct table_decision *'), Evict(0, 7)); result = out.handle == 7",
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
    "a kernel's array on the host": (
        "scale(4, 256, MemRef(x), 2.0, 1000)",
        "pass mgpu_rt.to_device(array)",
        "scale(4, 256, MemRef(c := mgpu_rt.to_device(x)), 2.0, 1000); result = doubled(c)",
    ),
    "an array with gaps for the device": (
        "mgpu_rt.to_device(gaps)",
        "pass numpy.ascontiguousarray(array)",
        "c = mgpu_rt.to_device(numpy.ascontiguousarray(gaps))\n"
        "result = (c.to_host() == gaps).all()",
    ),
    "an object": (
        "scale(4, 256, MemRef(z), fractions.Fraction(2), 1000)",
        "pass a number, an array, or bytes",
        "scale(4, 256, MemRef(z), float(fractions.Fraction(2)), 1000); result = doubled(z)",
    ),
    "an array of objects": (
        "mgpu_rt.to_device(numpy.array([object()]))",
        "give numbers",
        "c = mgpu_rt.to_device(y.astype(object).astype('f4'))\n"
        "scale(4, 256, MemRef(c), 2.0, 1000); result = doubled(c)",
    ),
    "big-endian elements": (
        "mgpu_rt.to_device(y.astype('>f4'))",
        "array.astype(array.dtype.newbyteorder('='))",
        "array = y.astype('>f4'); c = array.astype(array.dtype.newbyteorder('='))\n"
        "scale(4, 256, MemRef(c := mgpu_rt.to_device(c)), 2.0, 1000); result = doubled(c)",
    ),
    "a mask": (
        "mgpu_rt.to_device(numpy.ma.array(y))",
        "array.filled(value)",
        "c = mgpu_rt.to_device(numpy.ma.array(y).filled(0))\n"
        "scale(4, 256, MemRef(c), 2.0, 1000); result = doubled(c)",
    ),
    "a copy by DLPack": (
        "mgpu_rt.to_device(x).__dlpack__(copy=True)",
        "copy the array first",
        "c = mgpu_rt.empty(1000, 'float32'); c.copy_from(x)\n"
        "result = 'dltensor' in repr(c.__dlpack__())",
    ),
    "a type that the array interface lacks": (
        "mgpu_rt.empty(4, 'bfloat16').__cuda_array_interface__",
        "use DLPack",
        "result = 'dltensor' in repr(mgpu_rt.empty(4, 'bfloat16').__dlpack__())",
    ),
    "elements at odd distances": (
        "Library(mgpu_rt.lower('first.mlir')).first(numpy.ones(9, 'f4,u1')['f0'])",
        "copy the array, so that its elements are contiguous",
        "odd = numpy.ones(9, 'f4,u1')['f0']\n"
        "result = Library(mgpu_rt.lower('first.mlir')).first(odd.copy()) == 1",
    ),
    "a number for a vector": (
        "Module('vector.o')['fill'](1, 1, 3.0, MemRef(mgpu_rt.empty(4)))",
        "the parameter has 16 bytes: pass bytes",
        "bits, c = numpy.ones(4, 'f4').tobytes(), mgpu_rt.empty(4)\n"
        "Module('vector.o')['fill'](1, 1, bits, MemRef(c)); result = (c.to_host() == 1).all()",
    ),
    "a file with two images": (
        "Module('two.o')",
        "say which by holding='a kernel of it'",
        "result = 'nothing' in repr(Module('two.o', holding='nothing'))",
    ),
    "types that cannot be read": (
        "path = mgpu_rt.lower('kernels.mlir')\n"
        "text = open(path, 'rb').read().replace(b'{\"functions', b'{\"fun@tions')\n"
        "open('damaged.so', 'wb').write(text); Library('damaged.so')",
        "lower the program again",
        "Library(mgpu_rt.lower('kernels.mlir')).scale_on_host(x, 2.0); result = doubled(x, y)",
    ),
    "no NaNs": (
        "mgpu_rt.hooks.NanCheck(dtype='i32')",
        "name one of f16, bf16, f32, f64",
        "result = mgpu_rt.hooks.NanCheck(dtype='f32').dtype == 'f32'",
    ),
    "a runtime whose __init__ leaves out its base's": (
        "class Bare(mgpu_rt.runtime.Runtime):\n    def __init__(self): pass\n"
        "with mgpu_rt.intercept(Bare()): scale(4, 256, MemRef(z), 2.0, 1000)",
        "is no Runtime whose __init__ calls super().__init__()",
        "class Made(mgpu_rt.runtime.Runtime):\n    def __init__(self): super().__init__()\n"
        "with mgpu_rt.intercept(Made()): scale(4, 256, MemRef(z), 2.0, 1000)\n"
        "result = doubled(z)",
    ),
    "a type of device arrays by NumPy's short name": (
        "mgpu_rt.empty(9, 'f4')",
        "or pass a type of NumPy's, such as numpy.dtype('f4')",
        "result = mgpu_rt.empty(9, numpy.dtype('f4')).to_host().dtype == 'f4'",
    ),
    "sizes of a launch": (
        "launched('grid', (4, -1, 1))",
        "give three sizes below 2**32",
        "result = launched('grid', (4, 1, 1))",
    ),
    "a type of device arrays": (
        "mgpu_rt.empty(10, 'float33')",
        "write one of ",
        "result = mgpu_rt.empty(10, 'float32').to_host().dtype == 'f4'",
    ),
    "no stream": (
        "with mgpu_rt.use_stream('mine'): pass",
        "or a hipStream_t as int",
        "with mgpu_rt.use_stream(mgpu_rt.Stream()):\n"
        "    functions.scale_on_host(x, 2.0)\n"
        "result = doubled(x, y)",
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
}

PAIR = """func.func @pair(%x: i32) -> (i32, i32) ATTRIBUTES {
  %one = arith.constant 1 : i32
  %more = arith.addi %x, %one : i32
  return %x, %more : i32, i32
}"""
C_INTERFACE = "attributes {llvm.emit_c_interface}"
VECTOR = """gpu.module @vectors {
  gpu.func @fill(%v: vector<4xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    vector.store %v, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}"""
ANOTHER = "gpu.module @others { gpu.func @nothing() kernel { gpu.return } }"
PROGRAMS = {
    "kernels.mlir": (ROOT / "examples" / "python" / "kernels.mlir").read_text(),
    "pair.mlir": PAIR.replace("ATTRIBUTES", ""),
    "pairs.mlir": PAIR.replace("ATTRIBUTES", C_INTERFACE),
    "vector.mlir": VECTOR,
    "two.mlir": f"{VECTOR}\n{ANOTHER}",
    "first.mlir": f"""func.func @first(%x: memref<?xf32, strided<[?]>>) -> f32 {C_INTERFACE} {{
  %c0 = arith.constant 0 : index
  %first = memref.load %x[%c0] : memref<?xf32, strided<[?]>>
  return %first : f32
}}""",
}

#: Prints for each case the text of the exception, and the result of the code that follows it.
EACH = """
import json, subprocess, sys
command = [sys.executable, "-m", "mgpu_rt"]
for name in ("kernels", "vector", "two"):
    subprocess.run([*command, "lower", f"{name}.mlir", "-o", f"{name}.o"], check=True)
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
