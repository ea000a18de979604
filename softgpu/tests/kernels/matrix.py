"""Products of whole matrices by matrix instructions, and their denormals on gfx90a.

softgpu/tests/isa/test_matrix.py tests each shape and each pattern of lanes, and
softgpu/tests/isa/matrix.py describes how a wave stores matrices in registers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgpu.tests.isa.matrix import LANES, TYPES, Shape, numbers
from softgpu.tests.kernels.compare import bf16, from_bf16
from softgpu.tests.kernels.program import Launch, Module

MODULE = Module("matrix")


def _vector(kind: str, count: int) -> str:
    return f"vector<{count}x{kind}>"


def _kernel(shape: Shape) -> str:
    operand = _vector(shape.kind, shape.each)
    result = _vector(shape.result, shape.results)
    return f"""
    gpu.func @{shape.name}(%ma: memref<?x?x{shape.kind}>, %mb: memref<?x?x{shape.kind}>,
        %mc: memref<?x?x{shape.result}>, %md: memref<?x?x{shape.result}>) kernel {{
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      %a = vector.load %ma[%t, %zero] : memref<?x?x{shape.kind}>, {operand}
      %b = vector.load %mb[%t, %zero] : memref<?x?x{shape.kind}>, {operand}
      %c = vector.load %mc[%t, %zero] : memref<?x?x{shape.result}>, {result}
      %d = amdgpu.mfma {shape.rows}x{shape.rows}x{shape.depth} %a * %b + %c
           {{ abid = 0 : i32, blocks = {shape.blocks} : i32, cbsz = 0 : i32 }} blgp = none
           : {operand}, {operand}, {result}
      vector.store %d, %md[%t, %zero] : memref<?x?x{shape.result}>, {result}
      gpu.return
    }}"""


# ---- denormals -----------------------------------------------------------------------------------


def _flushed(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, 0, values)


def _with_denormals(shape: Shape) -> Callable[[np.random.Generator], Launch]:
    """gfx90a's matrix instructions treat f16 denormals as zero, according to AMD's documentation of
    MIOpen."""

    def data(rng: np.random.Generator) -> Launch:
        size = (shape.blocks, shape.rows, shape.depth)
        tiny = float(np.finfo(np.float16).tiny)
        powers = 2.0 ** rng.integers(-2, 3, size)
        a = (tiny * powers * rng.choice([-1, 1], size)).astype(np.float16)
        b = rng.integers(-4, 5, size).astype(np.float16)
        c = np.zeros((shape.blocks, shape.rows, shape.rows), np.float32)
        d = np.einsum("bik,bjk->bij", _flushed(a).astype(np.float32), b.astype(np.float32))
        operand, result = shape.operand_at(), shape.result_at()
        out = np.zeros((LANES, shape.results), np.float32)
        return Launch([a[operand], b[operand], c[result], out], {3: d[result] + np.float32(0)})

    return data


for _shape in (Shape("f16", 16, 16, 1, 4), Shape("f16", 4, 4, 16, 4)):
    MODULE.add(_shape.name, _kernel(_shape), _with_denormals(_shape))


@MODULE.program("""
    gpu.func @dot2(%ma: memref<?x?xf16>, %mb: memref<?x?xf16>, %mc: memref<?xf32>) kernel {
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      %wrap = arith.constant false
      %a = vector.load %ma[%t, %zero] : memref<?x?xf16>, vector<2xf16>
      %b = vector.load %mb[%t, %zero] : memref<?x?xf16>, vector<2xf16>
      %c = memref.load %mc[%t] : memref<?xf32>
      %r = llvm.call_intrinsic "llvm.amdgcn.fdot2"(%a, %b, %c, %wrap)
           : (vector<2xf16>, vector<2xf16>, f32, i1) -> f32
      memref.store %r, %mc[%t] : memref<?xf32>
      gpu.return
    }""")
def dot2(rng: np.random.Generator) -> Launch:
    tiny = float(np.finfo(np.float16).tiny)
    a = (tiny * 2.0 ** rng.integers(-3, 3, (LANES, 2))).astype(np.float16)
    b = rng.integers(-4, 5, (LANES, 2)).astype(np.float16)
    c = (rng.integers(-4, 5, LANES) * tiny).astype(np.float32)
    products = _flushed(a).astype(np.float32) * b.astype(np.float32)
    return Launch([a, b, c], {2: c + products.sum(axis=1)})


# ---- products of whole matrices; each wave computes one tile -------------------------------------


def _matmul(shape: Shape, name: str) -> str:
    """A is rows × depth and B is columns × depth, so each lane's elements are contiguous in A and
    in B."""
    operand = _vector(shape.kind, shape.each)
    result = _vector(shape.result, shape.results)
    zero = "0" if shape.result == "i32" else "0.0"
    stores = []
    for register in range(shape.results):
        row = 8 * (register // 4) + register % 4 if shape.rows == 32 else register
        stores += [
            f"%r{register} = arith.constant {row} : index",
            f"%row{register} = arith.addi %base, %r{register} : index",
            f"%v{register} = vector.extract %sum[{register}] : {shape.result} from {result}",
            f"memref.store %v{register}, %md[%row{register}, %col] : memref<?x?x{shape.result}>",
        ]
    return f"""
    gpu.func @{name}(%ma: memref<?x?x{shape.kind}>, %mb: memref<?x?x{shape.kind}>,
        %md: memref<?x?x{shape.result}>, %depth: index) kernel {{
      %t = gpu.thread_id x
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %rows = arith.constant {shape.rows} : index
      %each = arith.constant {shape.each} : index
      %step = arith.constant {shape.depth} : index
      %lane = arith.remui %t, %rows : index
      %group = arith.divui %t, %rows : index
      %offset = arith.muli %group, %each : index
      %top = arith.muli %by, %rows : index
      %left = arith.muli %bx, %rows : index
      %arow = arith.addi %top, %lane : index
      %col = arith.addi %left, %lane : index
      %none = arith.constant dense<{zero}> : {result}
      %sum = scf.for %k = %zero to %depth step %step iter_args(%s = %none) -> ({result}) {{
        %at = arith.addi %k, %offset : index
        %a = vector.load %ma[%arow, %at] : memref<?x?x{shape.kind}>, {operand}
        %b = vector.load %mb[%col, %at] : memref<?x?x{shape.kind}>, {operand}
        %d = amdgpu.mfma {shape.rows}x{shape.rows}x{shape.depth} %a * %b + %s
             {{ abid = 0 : i32, blocks = 1 : i32, cbsz = 0 : i32 }} blgp = none
             : {operand}, {operand}, {result}
        scf.yield %d : {result}
      }}
      %quarter = arith.muli %group, %four : index
      %base = arith.addi %top, %quarter : index
      {chr(10).join(stores)}
      gpu.return
    }}"""


def _matrices(shape: Shape) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        rows, columns, depth = 2 * shape.rows, 3 * shape.rows, 4 * shape.depth
        exact = shape.kind == "i8"
        if exact:
            a, b = (numbers(rng, "i8", (n, depth)) for n in (rows, columns))
        else:
            a, b = (rng.normal(size=(n, depth)).astype(np.float32) for n in (rows, columns))
            a, b = ((bf16(m) if shape.kind == "bf16" else m.astype(np.float16)) for m in (a, b))
        x, y = (from_bf16(m) if shape.kind == "bf16" else m for m in (a, b))
        wide = np.int32 if exact else np.float64
        d = x.astype(wide) @ y.astype(wide).T
        # The instruction rounds each partial sum to f32, so the error bound grows with the partial
        # sums.
        bound = float((np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64)).T).max())
        return Launch(
            [a, b, np.zeros(d.shape, TYPES[shape.result]), np.int64(depth)],
            {2: d},
            grid=(3, 2),
            ulp=0 if exact else 4,
            absolute=0 if exact else bound * 2.0**-22,
        )

    return data


for _shape in (
    Shape("i8", 16, 16, 1, 4),
    Shape("f16", 32, 8, 1, 4),
    Shape("bf16", 16, 16, 1, 4),
):
    _name = f"matmul_{_shape.kind}_{_shape.rows}"
    MODULE.add(_name, _matmul(_shape, _name), _matrices(_shape))
