"""Compiles random programs for the device and for the host processor. Runs the programs on the host
processor to compute the expected results."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from mgpu_rt._lowering.toolchain import run, tool
from softgpu.tests.kernels.generator import FLOATS, INTEGERS, ITEMS, OWN, UNIFORMS, RandomProgram
from softgpu.tests.kernels.inputs import FLOATS as FLOAT_TYPES
from softgpu.tests.kernels.inputs import INTEGERS as INTEGER_TYPES
from softgpu.tests.kernels.inputs import any_floats, any_integers
from softgpu.tests.kernels.program import Launch, Module

_PASSES = (
    "convert-scf-to-cf,convert-vector-to-llvm,convert-math-to-llvm,convert-math-to-libm,"
    "finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-arith-to-llvm,"
    "convert-index-to-llvm,reconcile-unrealized-casts"
)
_MEMORIES = [
    *(f"%in_{kind}: memref<?x{kind}>" for kind in [*INTEGERS, *FLOATS]),
    *(f"%out_{kind}: memref<?x{kind}>" for kind in INTEGERS),
]
_ARGUMENTS = ", ".join([*_MEMORIES, *(f"{name}: {kind}" for name, kind in UNIFORMS.items())])
_OWN = ("i32", "i64")
BLOCK = 128


def _name(program: RandomProgram) -> str:
    return f"random_{program.seed}"


def for_device(program: RandomProgram) -> str:
    private = ", #gpu.address_space<private>"
    own = ", ".join(f"%own_{kind}: memref<{OWN}x{kind}{private}>" for kind in _OWN)
    return f"""
    gpu.func @{_name(program)}({_ARGUMENTS}) private({own}) kernel {{
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      {program.body.replace("#PRIVATE#", private)}
      gpu.return
    }}"""


def for_processor(program: RandomProgram) -> str:
    own = "\n".join(f"%own_{kind} = memref.alloca() : memref<{OWN}x{kind}>" for kind in _OWN)
    return f"""
    func.func @{_name(program)}({_ARGUMENTS}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %items = arith.constant {ITEMS} : index
      {own}
      scf.for %i = %zero to %items step %one {{
        {program.body.replace("#PRIVATE#", "")}
      }}
      return
    }}"""


def module(name: str, programs: list[RandomProgram]) -> Module:
    """Returns the programs for the device, with their inputs and expected results."""
    result = Module(name)
    for program in programs:
        result.add(_name(program), for_device(program), lambda rng, p=program: data(p))
    return result


def data(program: RandomProgram) -> Launch:
    """Returns a launch whose inputs depend on the program's seed; the host processor computes the
    expected results."""
    rng = np.random.default_rng(program.seed)
    inputs = [any_integers(rng, INTEGER_TYPES[kind], ITEMS) for kind in INTEGERS]
    inputs += [any_floats(rng, FLOAT_TYPES[kind], ITEMS) for kind in FLOATS]
    outputs = [np.zeros(ITEMS, INTEGER_TYPES[kind]) for kind in INTEGERS]
    uniforms = [rng.integers(-(2**31), 2**31, dtype=np.int32), rng.integers(-(2**62), 2**62)]
    arguments = [*inputs, *outputs, *uniforms, np.float32(rng.normal())]
    return Launch(arguments, {}, grid=(ITEMS // BLOCK,), block=(BLOCK,))


class Processor:
    """A shared library of the programs, compiled for the host processor."""

    def __init__(self, programs: list[RandomProgram]) -> None:
        text = "\n".join(["module {", *map(for_processor, programs), "}"])
        with tempfile.TemporaryDirectory() as scratch:
            ir, obj, library = (Path(scratch, name) for name in ("x.ll", "x.o", "x.so"))
            passes = f"--pass-pipeline=builtin.module({_PASSES})"
            mlir = run([tool("mlir-opt", 22), passes], text.encode())
            ir.write_bytes(run([tool("mlir-translate", 22), "--mlir-to-llvmir"], mlir))
            run([tool("llc", 22), "-O1", "-filetype=obj", "-relocation-model=pic", ir, "-o", obj])
            run(["cc", "-shared", obj, "-o", library, "-lm"])
            self.library = ctypes.CDLL(str(library))

    def run(self, program: RandomProgram) -> list[np.ndarray]:
        """Returns the outputs, in the order of INTEGERS."""
        values = [a.copy() for a in data(program).arguments]
        arguments: list[object] = []
        for value in values:
            if isinstance(value, np.ndarray):
                pointer = ctypes.c_void_p(value.ctypes.data)
                arguments += [pointer, pointer, *map(ctypes.c_int64, (0, len(value), 1))]
            elif value.dtype.kind == "f":
                arguments.append(ctypes.c_float(value))
            else:
                arguments.append({4: ctypes.c_int32, 8: ctypes.c_int64}[value.itemsize](value))
        getattr(self.library, _name(program))(*arguments)
        first = len(INTEGERS) + len(FLOATS)
        return values[first : first + len(INTEGERS)]
