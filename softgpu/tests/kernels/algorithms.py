"""Kernels of real algorithms: products, normalisation, sums, sorting, pictures."""

from __future__ import annotations

import numpy as np

from softgpu.tests.kernels.program import Launch, Module

MODULE = Module("algorithms", sample=True)

WORKGROUP = "#gpu.address_space<workgroup>"
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
    gpu.func @transpose(%in: memref<?x?xf32>, %out: memref<?x?xf32>, %rows: index, %columns: index)
        workgroup(%tile: memref<16x17xf32, {WORKGROUP}>) kernel {{
      %size = arith.constant 16 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %x0 = arith.muli %bx, %size : index
      %y0 = arith.muli %by, %size : index
      %c = arith.addi %x0, %x : index
      %r = arith.addi %y0, %y : index
      %c_in = arith.cmpi ult, %c, %columns : index
      %r_in = arith.cmpi ult, %r, %rows : index
      %in_range = arith.andi %c_in, %r_in : i1
      scf.if %in_range {{
        %v = memref.load %in[%r, %c] : memref<?x?xf32>
        memref.store %v, %tile[%y, %x] : memref<16x17xf32, {WORKGROUP}>
      }}
      gpu.barrier
      %tc = arith.addi %y0, %x : index
      %tr = arith.addi %x0, %y : index
      %tc_in = arith.cmpi ult, %tc, %rows : index
      %tr_in = arith.cmpi ult, %tr, %columns : index
      %out_range = arith.andi %tc_in, %tr_in : i1
      scf.if %out_range {{
        %v = memref.load %tile[%x, %y] : memref<16x17xf32, {WORKGROUP}>
        memref.store %v, %out[%tr, %tc] : memref<?x?xf32>
      }}
      gpu.return
    }}""")
def transpose(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=(37, 50)).astype(np.float32)
    return Launch(
        [x, np.zeros((50, 37), np.float32), np.int64(37), np.int64(50)],
        {1: x.T.copy()},
        grid=(4, 3),
        block=(16, 16),
    )


@MODULE.program(f"""
    gpu.func @histogram(%in: memref<?xi8>, %out: memref<?xi32>, %count: index)
        workgroup(%bins: memref<256xi32, {WORKGROUP}>) kernel {{
      %t = gpu.thread_id x
      %g = gpu.global_id x
      %size = gpu.grid_dim x
      %block = gpu.block_dim x
      %step = arith.muli %size, %block : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      memref.store %zero, %bins[%t] : memref<256xi32, {WORKGROUP}>
      gpu.barrier
      scf.for %i = %g to %count step %step {{
        %v = memref.load %in[%i] : memref<?xi8>
        %bin = arith.index_castui %v : i8 to index
        %old = memref.atomic_rmw addi %one, %bins[%bin]
             : (i32, memref<256xi32, {WORKGROUP}>) -> i32
      }}
      gpu.barrier
      %found = memref.load %bins[%t] : memref<256xi32, {WORKGROUP}>
      %old = memref.atomic_rmw addi %found, %out[%t] : (i32, memref<?xi32>) -> i32
      gpu.return
    }}""")
def histogram(rng: np.random.Generator) -> Launch:
    x = rng.normal(100, 30, 5000).astype(np.uint8)
    expected = np.bincount(x, minlength=256).astype(np.int32)
    return Launch(
        [x, np.zeros(256, np.int32), np.int64(5000)], {1: expected}, grid=(3,), block=(256,)
    )


@MODULE.program(f"""
    gpu.func @prefix_sum(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%s: memref<256xi32, {WORKGROUP}>) kernel {{
      %t = gpu.thread_id x
      %g = gpu.global_id x
      %one = arith.constant 1 : index
      %size = arith.constant 256 : index
      %zero = arith.constant 0 : i32
      %x = memref.load %in[%g] : memref<?xi32>
      memref.store %x, %s[%t] : memref<256xi32, {WORKGROUP}>
      gpu.barrier
      %end = scf.while (%by = %one) : (index) -> index {{
        %more = arith.cmpi ult, %by, %size : index
        scf.condition(%more) %by : index
      }} do {{
      ^bb0(%by: index):
        %there = arith.cmpi uge, %t, %by : index
        %add = scf.if %there -> (i32) {{
          %at = arith.subi %t, %by : index
          %v = memref.load %s[%at] : memref<256xi32, {WORKGROUP}>
          scf.yield %v : i32
        }} else {{
          scf.yield %zero : i32
        }}
        gpu.barrier
        %own = memref.load %s[%t] : memref<256xi32, {WORKGROUP}>
        %sum = arith.addi %own, %add : i32
        memref.store %sum, %s[%t] : memref<256xi32, {WORKGROUP}>
        gpu.barrier
        %double = arith.addi %by, %by : index
        scf.yield %double : index
      }}
      %r = memref.load %s[%t] : memref<256xi32, {WORKGROUP}>
      memref.store %r, %out[%g] : memref<?xi32>
      gpu.return
    }}""")
def prefix_sum(rng: np.random.Generator) -> Launch:
    x = rng.integers(-1000, 1000, 768, np.int32)
    expected = x.reshape(3, 256).cumsum(axis=1, dtype=np.int32).ravel()
    return Launch([x, np.zeros_like(x)], {1: expected}, grid=(3,), block=(256,))


def _tree(kind: str, combine: str) -> str:
    name = f"tree_{combine}_{kind}"
    local = f"memref<256x{kind}, {WORKGROUP}>"
    return f"""
    gpu.func @{name}(%in: memref<?x{kind}>, %out: memref<?x{kind}>)
        workgroup(%s: {local}) kernel {{
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %g = gpu.global_id x
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %half = arith.constant 128 : index
      %x = memref.load %in[%g] : memref<?x{kind}>
      memref.store %x, %s[%t] : {local}
      gpu.barrier
      %end = scf.while (%by = %half) : (index) -> index {{
        %more = arith.cmpi ugt, %by, %zero : index
        scf.condition(%more) %by : index
      }} do {{
      ^bb0(%by: index):
        %active = arith.cmpi ult, %t, %by : index
        scf.if %active {{
          %at = arith.addi %t, %by : index
          %l = memref.load %s[%t] : {local}
          %r = memref.load %s[%at] : {local}
          %v = arith.{combine} %l, %r : {kind}
          memref.store %v, %s[%t] : {local}
        }}
        gpu.barrier
        %next = arith.shrui %by, %one : index
        scf.yield %next : index
      }}
      %first = arith.cmpi eq, %t, %zero : index
      scf.if %first {{
        %r = memref.load %s[%zero] : {local}
        memref.store %r, %out[%b] : memref<?x{kind}>
      }}
      gpu.return
    }}"""


def _reduced(kind: type, combine: np.ufunc):
    """Returns a function that generates the data of a tree reduction; each step of the reduction
    combines the two halves of a row."""

    def data(rng: np.random.Generator) -> Launch:
        x = rng.normal(size=1024).astype(kind)
        rows = x.reshape(4, 256)
        while rows.shape[1] > 1:
            half = rows.shape[1] // 2
            rows = combine(rows[:, :half], rows[:, half:])
        return Launch([x, np.zeros(4, kind)], {1: rows.ravel()}, grid=(4,), block=(256,))

    return data


for _combine, _kind, _type, _ufunc in (
    ("addf", "f32", np.float32, np.add),
    ("addf", "f64", np.float64, np.add),
    ("addf", "f16", np.float16, np.add),
    ("maximumf", "f32", np.float32, np.maximum),
):
    MODULE.add(f"tree_{_combine}_{_kind}", _tree(_kind, _combine), _reduced(_type, _ufunc))


@MODULE.program("""
    gpu.func @stencil(%in: memref<?x?xf32>, %out: memref<?x?xf32>, %height: index, %width: index)
        kernel {
      %x = gpu.global_id x
      %y = gpu.global_id y
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %right = arith.subi %width, %one : index
      %bottom = arith.subi %height, %one : index
      %a = arith.cmpi ugt, %x, %zero : index
      %b = arith.cmpi ult, %x, %right : index
      %c = arith.cmpi ugt, %y, %zero : index
      %d = arith.cmpi ult, %y, %bottom : index
      %ab = arith.andi %a, %b : i1
      %cd = arith.andi %c, %d : i1
      %inner = arith.andi %ab, %cd : i1
      scf.if %inner {
        %x0 = arith.subi %x, %one : index
        %x1 = arith.addi %x, %one : index
        %y0 = arith.subi %y, %one : index
        %y1 = arith.addi %y, %one : index
        %m = memref.load %in[%y, %x] : memref<?x?xf32>
        %w = memref.load %in[%y, %x0] : memref<?x?xf32>
        %e = memref.load %in[%y, %x1] : memref<?x?xf32>
        %n = memref.load %in[%y0, %x] : memref<?x?xf32>
        %s = memref.load %in[%y1, %x] : memref<?x?xf32>
        %we = arith.addf %w, %e : f32
        %ns = arith.addf %n, %s : f32
        %all = arith.addf %we, %ns : f32
        %minus4 = arith.constant -4.0 : f32
        %middle = arith.mulf %m, %minus4 : f32
        %r = arith.addf %all, %middle : f32
        memref.store %r, %out[%y, %x] : memref<?x?xf32>
      }
      gpu.return
    }""")
def stencil(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=(45, 61)).astype(np.float32)
    expected = np.zeros_like(x)
    around = (x[1:-1, :-2] + x[1:-1, 2:]) + (x[:-2, 1:-1] + x[2:, 1:-1])
    expected[1:-1, 1:-1] = around + x[1:-1, 1:-1] * np.float32(-4)
    return Launch(
        [x, np.zeros_like(x), np.int64(45), np.int64(61)], {1: expected}, grid=(4, 6), block=(16, 8)
    )


@MODULE.program("""
    gpu.func @sort_step(%data: memref<?xi32>, %distance: index, %run: index) kernel {
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %other = arith.xori %i, %distance : index
      %lower = arith.cmpi ugt, %other, %i : index
      scf.if %lower {
        %a = memref.load %data[%i] : memref<?xi32>
        %b = memref.load %data[%other] : memref<?xi32>
        %bit = arith.andi %i, %run : index
        %up = arith.cmpi eq, %bit, %zero : index
        %more = arith.cmpi sgt, %a, %b : i32
        %swap = arith.cmpi eq, %up, %more : i1
        scf.if %swap {
          memref.store %b, %data[%i] : memref<?xi32>
          memref.store %a, %data[%other] : memref<?xi32>
        }
      }
      gpu.return
    }""")
def sort_step(rng: np.random.Generator) -> Launch:
    """Performs one step of a bitonic sort."""
    x = rng.integers(-1000, 1000, 512, np.int32)
    i = np.arange(512)
    a, b = x, x[i ^ 32]
    low = np.minimum(a, b), np.maximum(a, b)
    rising = (i & 128) == 0
    expected = np.where(((i & 32) == 0) == rising, *low)
    return Launch([x, np.int64(32), np.int64(128)], {0: expected}, grid=(2,), block=(256,))


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
