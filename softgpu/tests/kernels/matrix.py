"""Matrix instructions: one kernel for each shape, and whole matrix products.

softgpu/tests/isa/matrix.py describes how a wave stores matrices in registers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgpu.tests.isa.matrix import (
    LANES,
    OF_GFX942,
    PATTERNS,
    SINCE_GFX90A,
    SINCE_GFX908,
    TYPES,
    Pattern,
    Shape,
    numbers,
    product,
)
from softgpu.tests.kernels.compare import bf16, from_bf16
from softgpu.tests.kernels.program import Launch, Module

MODULE = Module("matrix")
#: Shapes that gfx908 and gfx90a have.
FIRST = Module("matrix_first", sample=True)
#: gfx942's shapes, some of which have other names on older targets.
NEWER = Module("matrix_newer")


def _vector(kind: str, count: int) -> str:
    return kind if count == 1 else f"vector<{count}x{kind}>"


def _load(name: str, source: str, kind: str, count: int) -> str:
    if count == 1:
        return f"%{name} = memref.load %{source}[%t, %zero] : memref<?x?x{kind}>"
    vector = _vector(kind, count)
    return f"%{name} = vector.load %{source}[%t, %zero] : memref<?x?x{kind}>, {vector}"


def _kernel(shape: Shape, name: str, blgp: str = "none") -> str:
    operand = _vector(shape.kind, shape.each)
    result = _vector(shape.result, shape.results)
    store = (
        f"memref.store %d, %md[%t, %zero] : memref<?x?x{shape.result}>"
        if shape.results == 1
        else f"vector.store %d, %md[%t, %zero] : memref<?x?x{shape.result}>, {result}"
    )
    return f"""
    gpu.func @{name}(%ma: memref<?x?x{shape.kind}>, %mb: memref<?x?x{shape.kind}>,
        %mc: memref<?x?x{shape.result}>, %md: memref<?x?x{shape.result}>) kernel {{
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      {_load("a", "ma", shape.kind, shape.each)}
      {_load("b", "mb", shape.kind, shape.each)}
      {_load("c", "mc", shape.result, shape.results)}
      %d = amdgpu.mfma {shape.rows}x{shape.rows}x{shape.depth} %a * %b + %c
           {{ abid = 0 : i32, blocks = {shape.blocks} : i32, cbsz = 0 : i32 }} blgp = {blgp}
           : {operand}, {operand}, {result}
      {store}
      gpu.return
    }}"""


def _multiplied(shape: Shape) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        size = (shape.blocks, shape.rows, shape.depth)
        a, b = (numbers(rng, shape.kind, size) for _ in range(2))
        c = numbers(rng, shape.result, (shape.blocks, shape.rows, shape.rows))
        x, y = (from_bf16(m) if shape.kind == "bf16" else m for m in (a, b))
        wide = TYPES[shape.result]
        d = c + np.einsum("bik,bjk->bij", x.astype(wide), y.astype(wide))
        operand, result = shape.operand_at(), shape.result_at()
        out = np.zeros((LANES, shape.results), wide)
        return Launch([a[operand], b[operand], c[result], out], {3: d[result]})

    return data


for _module, _shapes in ((FIRST, SINCE_GFX908), (MODULE, SINCE_GFX90A), (NEWER, OF_GFX942)):
    for _shape in _shapes:
        _module.add(_shape.name, _kernel(_shape, _shape.name), _multiplied(_shape))


# ---- lanes that read other lanes' elements of B --------------------------------------------------


def _swapped(shape: Shape, blgp: str) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        a, b = (numbers(rng, shape.kind, (LANES, shape.each)) for _ in range(2))
        c = numbers(rng, shape.result, (LANES, shape.results))
        return Launch([a, b, c, np.zeros_like(c)], {3: product(shape, a, b, c, Pattern(blgp=blgp))})

    return data


_shape = Shape("f32", 16, 1, 4, 1)
for _blgp in PATTERNS:
    if _blgp != "none":
        FIRST.add(_blgp, _kernel(_shape, _blgp, _blgp), _swapped(_shape, _blgp))


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
    MODULE.add(_shape.name, _kernel(_shape, _shape.name), _with_denormals(_shape))


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
    Shape("i8", 32, 8, 1, 4),
    Shape("f16", 16, 16, 1, 4),
    Shape("f16", 32, 8, 1, 4),
    Shape("bf16", 16, 16, 1, 4),
    Shape("bf16", 32, 8, 1, 4),
):
    _name = f"matmul_{_shape.kind}_{_shape.rows}"
    MODULE.add(_name, _matmul(_shape, _name), _matrices(_shape))


# ---- sparse matrices: two of every four elements in A are nonzero --------------------------------


def _sparse(kind: str, result: str, rows: int, depth: int) -> str:
    """Returns a kernel that loads each lane's elements in memory order. One register contains
    several sets of indices, and the instruction selects one set."""
    stored = rows * depth // LANES // 2
    a, b = _vector(kind, stored), _vector(kind, 2 * stored)
    c, element = _vector(result, rows * rows // LANES), f"i{2 * stored}"
    i = _vector(element, 32 // (2 * stored))
    return f"""
    gpu.func @sparse_{kind}(%ma: memref<?x?x{kind}>, %mb: memref<?x?x{kind}>,
        %mi: memref<?x?x{element}>, %md: memref<?x?x{result}>) kernel {{
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      %a = vector.load %ma[%t, %zero] : memref<?x?x{kind}>, {a}
      %b = vector.load %mb[%t, %zero] : memref<?x?x{kind}>, {b}
      %c = vector.load %md[%t, %zero] : memref<?x?x{result}>, {c}
      %i = vector.load %mi[%t, %zero] : memref<?x?x{element}>, {i}
      %d = amdgpu.sparse_mfma {rows}x{rows}x{depth} %a * %b + %c sparse(%i : {i})
           {{ abid = 1 : i32, cbsz = 0 : i32 }} : {a}, {b}, {c}
      vector.store %d, %md[%t, %zero] : memref<?x?x{result}>, {c}
      gpu.return
    }}"""


def _sparse_product(kind: str, rows: int, depth: int) -> Callable[[np.random.Generator], Launch]:
    def data(rng: np.random.Generator) -> Launch:
        stored = rows * depth // LANES // 2
        shape = Shape(kind, rows, depth, 1, 2 * stored)
        b = numbers(rng, kind, (1, rows, depth))
        c = numbers(rng, shape.result, (1, rows, rows))
        quarters = rng.permuted(np.tile(np.arange(4), (rows, depth // 4, 1)), axis=2)
        chosen = np.sort(quarters[..., :2], axis=2)
        kept = numbers(rng, kind, (rows, depth // 4, 2))
        dense = np.zeros((rows, depth // 4, 4), kept.dtype)
        np.put_along_axis(dense, chosen, kept, axis=2)
        wide = TYPES[shape.result]
        dense = dense.reshape(rows, depth).astype(wide)
        d = c + np.einsum("ik,bjk->bij", dense, b.astype(wide))

        def in_lanes(values: np.ndarray) -> np.ndarray:
            """Each lane holds the values for several successive groups of four elements."""
            parts = values.reshape(rows, depth // 2 // stored, stored)
            return parts.swapaxes(0, 1).reshape(LANES, stored)

        found = (in_lanes(chosen) << 2 * np.arange(stored)).sum(axis=1)
        word = {4: np.uint8, 8: np.uint16}[stored]
        indices = rng.integers(0, 2**16, (LANES, 32 // (2 * stored))).astype(word)
        indices[:, 1] = found
        result = shape.result_at()
        arrays = [in_lanes(kept), b[shape.operand_at()], indices, c[result].astype(wide)]
        return Launch(arrays, {3: d[result]})

    return data


NEWER.add("sparse_f16", _sparse("f16", "f32", 16, 32), _sparse_product("f16", 16, 32))
NEWER.add("sparse_i8", _sparse("i8", "i32", 32, 32), _sparse_product("i8", 32, 32))
