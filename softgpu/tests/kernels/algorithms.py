"""Kernels of real algorithms: tiled products, sorting."""

from __future__ import annotations

import numpy as np

from softgpu.tests.kernels.program import WORKGROUP, Launch, Module

MODULE = Module("algorithms", sample=True)

TILE = 16


def _tiled_matmul(kind: str) -> str:
    tile = f"memref<{TILE}x{TILE}x{kind}, {WORKGROUP}>"
    matrix = f"memref<?x?x{kind}>"
    add, mul, zero = ("addi", "muli", "0") if kind[0] == "i" else ("addf", "mulf", "0.0")
    return f"""
    gpu.func @matmul_{kind}(%a: {matrix}, %b: {matrix}, %c: {matrix}, %depth: index)
        workgroup(%ta: {tile}, %tb: {tile}) kernel {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %size = arith.constant {TILE} : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %row0 = arith.muli %by, %size : index
      %row = arith.addi %row0, %y : index
      %col0 = arith.muli %bx, %size : index
      %col = arith.addi %col0, %x : index
      %nothing = arith.constant {zero} : {kind}
      %sum = scf.for %k = %c0 to %depth step %size iter_args(%s = %nothing) -> ({kind}) {{
        %kx = arith.addi %k, %x : index
        %ky = arith.addi %k, %y : index
        %va = memref.load %a[%row, %kx] : {matrix}
        %vb = memref.load %b[%ky, %col] : {matrix}
        memref.store %va, %ta[%y, %x] : {tile}
        memref.store %vb, %tb[%y, %x] : {tile}
        gpu.barrier
        %part = scf.for %j = %c0 to %size step %c1 iter_args(%p = %s) -> ({kind}) {{
          %l = memref.load %ta[%y, %j] : {tile}
          %r = memref.load %tb[%j, %x] : {tile}
          %m = arith.{mul} %l, %r : {kind}
          %n = arith.{add} %p, %m : {kind}
          scf.yield %n : {kind}
        }}
        gpu.barrier
        scf.yield %part : {kind}
      }}
      memref.store %sum, %c[%row, %col] : {matrix}
      gpu.return
    }}"""


def _product(kind: type, rows: int, depth: int, columns: int):
    """Returns a function that generates the data of a matrix product. The function adds in the
    kernel's order, so the results are equal bit by bit."""

    def data(rng: np.random.Generator) -> Launch:
        if np.dtype(kind).kind == "i":
            a = rng.integers(-(2**31), 2**31, (rows, depth), kind)
            b = rng.integers(-(2**31), 2**31, (depth, columns), kind)
        else:
            a = rng.normal(size=(rows, depth)).astype(kind)
            b = rng.normal(size=(depth, columns)).astype(kind)
        total = np.zeros((rows, columns), kind)
        for k in range(depth):
            total += a[:, k : k + 1] * b[k]
        return Launch(
            [a, b, np.zeros_like(total), np.int64(depth)],
            {2: total},
            grid=(columns // TILE, rows // TILE),
            block=(TILE, TILE),
        )

    return data


for _kind, _type in (("f32", np.float32), ("f64", np.float64), ("i32", np.int32)):
    MODULE.add(f"matmul_{_kind}", _tiled_matmul(_kind), _product(_type, 48, 64, 32))


@MODULE.program(f"""
    gpu.func @whole_sort(%data: memref<?xf32>)
        workgroup(%s: memref<256xf32, {WORKGROUP}>) kernel {{
      %t = gpu.thread_id x
      %g = gpu.global_id x
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %size = arith.constant 256 : index
      %x = memref.load %data[%g] : memref<?xf32>
      memref.store %x, %s[%t] : memref<256xf32, {WORKGROUP}>
      gpu.barrier
      %r0 = scf.while (%run = %two) : (index) -> index {{
        %more = arith.cmpi ule, %run, %size : index
        scf.condition(%more) %run : index
      }} do {{
      ^bb0(%run: index):
        %start = arith.shrui %run, %one : index
        %r1 = scf.while (%by = %start) : (index) -> index {{
          %more = arith.cmpi ugt, %by, %zero : index
          scf.condition(%more) %by : index
        }} do {{
        ^bb0(%by: index):
          %other = arith.xori %t, %by : index
          %a = memref.load %s[%t] : memref<256xf32, {WORKGROUP}>
          %b = memref.load %s[%other] : memref<256xf32, {WORKGROUP}>
          gpu.barrier
          %first = arith.cmpi ult, %t, %other : index
          %bit = arith.andi %t, %run : index
          %up = arith.cmpi eq, %bit, %zero : index
          %low = arith.cmpi eq, %first, %up : i1
          %less = arith.minimumf %a, %b : f32
          %greater = arith.maximumf %a, %b : f32
          %v = arith.select %low, %less, %greater : f32
          memref.store %v, %s[%t] : memref<256xf32, {WORKGROUP}>
          gpu.barrier
          %next = arith.shrui %by, %one : index
          scf.yield %next : index
        }}
        %twice = arith.addi %run, %run : index
        scf.yield %twice : index
      }}
      %r = memref.load %s[%t] : memref<256xf32, {WORKGROUP}>
      memref.store %r, %data[%g] : memref<?xf32>
      gpu.return
    }}""")
def whole_sort(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=512).astype(np.float32)
    expected = np.sort(x.reshape(2, 256), axis=1).ravel()
    return Launch([x], {0: expected}, grid=(2,), block=(256,))
