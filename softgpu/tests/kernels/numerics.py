"""Kernels of floating-point numerics: softmax, layer norm, Mandelbrot, a dot product."""

from __future__ import annotations

import numpy as np

from softgpu.tests.kernels.program import Launch, Module

MODULE = Module("numerics", sample=True)

WORKGROUP = "#gpu.address_space<workgroup>"
COLUMNS = 128


@MODULE.program("""
    gpu.func @softmax(%in: memref<?x?xf32>, %out: memref<?x?xf32>) kernel {
      %row = gpu.block_id x
      %t = gpu.thread_id x
      %x = memref.load %in[%row, %t] : memref<?x?xf32>
      %top = gpu.all_reduce maximumf %x uniform {} : (f32) -> f32
      %d = arith.subf %x, %top : f32
      %e = math.exp %d : f32
      %sum = gpu.all_reduce add %e uniform {} : (f32) -> f32
      %r = arith.divf %e, %sum : f32
      memref.store %r, %out[%row, %t] : memref<?x?xf32>
      gpu.return
    }""")
def softmax(rng: np.random.Generator) -> Launch:
    x = rng.normal(0, 3, (5, COLUMNS)).astype(np.float32)
    e = np.exp(x.astype(np.longdouble) - x.max(axis=1, keepdims=True))
    expected = e / e.sum(axis=1, keepdims=True)
    # The kernel subtracts the row's maximum from each element, and rounds the difference before
    # computing the exponential. The difference is up to 20, so the rounding causes an error of up
    # to 20 half ulps in the exponential.
    return Launch([x, np.zeros_like(x)], {1: expected}, grid=(5,), block=(COLUMNS,), ulp=24)


@MODULE.program("""
    gpu.func @layer_norm(%in: memref<?x?xf32>, %scale: memref<?xf32>, %shift: memref<?xf32>,
                         %out: memref<?x?xf32>) kernel {
      %row = gpu.block_id x
      %t = gpu.thread_id x
      %count = arith.constant 128.0 : f32
      %small = arith.constant 1.0e-5 : f32
      %x = memref.load %in[%row, %t] : memref<?x?xf32>
      %sum = gpu.all_reduce add %x uniform {} : (f32) -> f32
      %mean = arith.divf %sum, %count : f32
      %d = arith.subf %x, %mean : f32
      %dd = arith.mulf %d, %d : f32
      %squares = gpu.all_reduce add %dd uniform {} : (f32) -> f32
      %variance = arith.divf %squares, %count : f32
      %v = arith.addf %variance, %small : f32
      %factor = math.rsqrt %v : f32
      %n = arith.mulf %d, %factor : f32
      %g = memref.load %scale[%t] : memref<?xf32>
      %b = memref.load %shift[%t] : memref<?xf32>
      %r = math.fma %n, %g, %b : f32
      memref.store %r, %out[%row, %t] : memref<?x?xf32>
      gpu.return
    }""")
def layer_norm(rng: np.random.Generator) -> Launch:
    x = rng.normal(2, 3, (4, COLUMNS)).astype(np.float32)
    scale, shift = (rng.normal(size=COLUMNS).astype(np.float32) for _ in range(2))
    d = x.astype(np.longdouble) - x.astype(np.longdouble).mean(axis=1, keepdims=True)
    variance = (d * d).mean(axis=1, keepdims=True)
    expected = d / np.sqrt(variance + 1e-5) * scale + shift
    # Subtracting the mean cancels digits: the difference has an absolute error of about 2^-20.
    return Launch(
        [x, scale, shift, np.zeros_like(x)],
        {3: expected},
        grid=(4,),
        block=(COLUMNS,),
        ulp=16,
        absolute=2.0**-20,
    )


def _mandelbrot(kind: str) -> str:
    return f"""
    gpu.func @mandelbrot_{kind}(%xs: memref<?x{kind}>, %ys: memref<?x{kind}>,
                                %out: memref<?x?xi32>) kernel {{
      %x = gpu.global_id x
      %y = gpu.global_id y
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %most = arith.constant 100 : i32
      %nothing = arith.constant 0.0 : {kind}
      %four = arith.constant 4.0 : {kind}
      %cr = memref.load %xs[%x] : memref<?x{kind}>
      %ci = memref.load %ys[%y] : memref<?x{kind}>
      %end:3 = scf.while (%n = %zero, %zr = %nothing, %zi = %nothing)
          : (i32, {kind}, {kind}) -> (i32, {kind}, {kind}) {{
        %rr = arith.mulf %zr, %zr : {kind}
        %ii = arith.mulf %zi, %zi : {kind}
        %size = arith.addf %rr, %ii : {kind}
        %near = arith.cmpf ole, %size, %four : {kind}
        %few = arith.cmpi slt, %n, %most : i32
        %more = arith.andi %near, %few : i1
        scf.condition(%more) %n, %zr, %zi : i32, {kind}, {kind}
      }} do {{
      ^bb0(%n: i32, %zr: {kind}, %zi: {kind}):
        %rr = arith.mulf %zr, %zr : {kind}
        %ii = arith.mulf %zi, %zi : {kind}
        %d = arith.subf %rr, %ii : {kind}
        %r = arith.addf %d, %cr : {kind}
        %ri = arith.mulf %zr, %zi : {kind}
        %ri2 = arith.addf %ri, %ri : {kind}
        %i = arith.addf %ri2, %ci : {kind}
        %m = arith.addi %n, %one : i32
        scf.yield %m, %r, %i : i32, {kind}, {kind}
      }}
      memref.store %end#0, %out[%y, %x] : memref<?x?xi32>
      gpu.return
    }}"""


def _escapes(kind: type):
    """Returns a function that counts the iterations in NumPy. NumPy rounds every operation as the
    device does, so the counts agree in every pixel."""

    def data(rng: np.random.Generator) -> Launch:
        xs = np.sort(rng.uniform(-2.2, 0.8, 64)).astype(kind)
        ys = np.sort(rng.uniform(-1.2, 1.2, 32)).astype(kind)
        cr, ci = np.meshgrid(xs, ys)
        zr, zi = np.zeros_like(cr), np.zeros_like(cr)
        counts = np.zeros(cr.shape, np.int32)
        with np.errstate(all="ignore"):
            for _ in range(100):
                near = zr * zr + zi * zi <= 4
                counts += near
                r, i = (zr * zr - zi * zi) + cr, (zr * zi + zr * zi) + ci
                zr, zi = np.where(near, r, zr), np.where(near, i, zi)
        out = np.zeros_like(counts)
        return Launch([xs, ys, out], {2: counts}, grid=(4, 4), block=(16, 8))

    return data


MODULE.add("mandelbrot_f32", _mandelbrot("f32"), _escapes(np.float32))
MODULE.add("mandelbrot_f64", _mandelbrot("f64"), _escapes(np.float64))


@MODULE.program("""
    gpu.func @dot_f64(%a: memref<?xf64>, %b: memref<?xf64>, %out: memref<?xf64>, %count: index)
        kernel {
      %t = gpu.thread_id x
      %g = gpu.global_id x
      %zero = arith.constant 0 : index
      %blocks = gpu.grid_dim x
      %size = gpu.block_dim x
      %step = arith.muli %blocks, %size : index
      %nothing = arith.constant 0.0 : f64
      %part = scf.for %i = %g to %count step %step iter_args(%s = %nothing) -> (f64) {
        %x = memref.load %a[%i] : memref<?xf64>
        %y = memref.load %b[%i] : memref<?xf64>
        %n = math.fma %x, %y, %s : f64
        scf.yield %n : f64
      }
      %all = gpu.all_reduce add %part uniform {} : (f64) -> f64
      %first = arith.cmpi eq, %t, %zero : index
      scf.if %first {
        %old = memref.atomic_rmw addf %all, %out[%zero] : (f64, memref<?xf64>) -> f64
      }
      gpu.return
    }""")
def dot_f64(rng: np.random.Generator) -> Launch:
    a, b = (rng.normal(size=10007) for _ in range(2))
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    return Launch(
        [a, b, np.zeros(1), np.int64(10007)],
        {2: exact.reshape(1)},
        grid=(4,),
        block=(128,),
        ulp=4,
        absolute=float(np.abs(a * b).sum()) * 2.0**-52,
    )


@MODULE.program("""
    gpu.func @newton(%in: memref<?xf64>, %out: memref<?xf64>) kernel {
      %i = gpu.global_id x
      %half = arith.constant 0.5 : f64
      %small = arith.constant 1.0e-15 : f64
      %x = memref.load %in[%i] : memref<?xf64>
      %one = arith.constant 1.0 : f64
      %start = arith.addf %x, %one : f64
      %end = scf.while (%r = %start) : (f64) -> f64 {
        %rr = arith.mulf %r, %r : f64
        %d = arith.subf %rr, %x : f64
        %a = math.absf %d : f64
        %e = arith.mulf %x, %small : f64
        %more = arith.cmpf ogt, %a, %e : f64
        scf.condition(%more) %r : f64
      } do {
      ^bb0(%r: f64):
        %q = arith.divf %x, %r : f64
        %s = arith.addf %r, %q : f64
        %n = arith.mulf %s, %half : f64
        scf.yield %n : f64
      }
      memref.store %end, %out[%i] : memref<?xf64>
      gpu.return
    }""")
def newton(rng: np.random.Generator) -> Launch:
    """Computes square roots by a loop of divisions; lanes leave the loop after different numbers of
    rounds."""
    x = rng.uniform(0.01, 1e4, 256)
    return Launch([x, np.zeros_like(x)], {1: np.sqrt(x)}, grid=(2,), block=(128,), ulp=4)
