"""Branches and loops in which lanes diverge and reconverge, and global variables of the device."""

from __future__ import annotations

import numpy as np

from softgpu.tests.kernels.program import Launch, Module

MODULE = Module(
    "control",
    sample=True,
    unoptimised=True,
    prelude="""
    memref.global constant @primes : memref<8xi32> = dense<[2, 3, 5, 7, 11, 13, 17, 19]>
    memref.global @scale : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
    memref.global @seen : memref<1xi64> = dense<0>""",
)


@MODULE.program("""
    gpu.func @nested(%in: memref<?xi32>, %out: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %c0 = arith.constant 0 : i32
      %x = memref.load %in[%i] : memref<?xi32>
      %n = arith.index_cast %x : i32 to index
      %r = scf.for %a = %zero to %n step %one iter_args(%s = %c0) -> (i32) {
        %inner = scf.for %b = %a to %n step %one iter_args(%u = %s) -> (i32) {
          %p = arith.muli %a, %b : index
          %q = arith.index_cast %p : index to i32
          %bit = arith.andi %p, %one : index
          %odd = arith.cmpi eq, %bit, %one : index
          %v = scf.if %odd -> (i32) {
            %w = arith.addi %u, %q : i32
            scf.yield %w : i32
          } else {
            %w = arith.subi %u, %x : i32
            scf.yield %w : i32
          }
          scf.yield %v : i32
        }
        scf.yield %inner : i32
      }
      memref.store %r, %out[%i] : memref<?xi32>
      gpu.return
    }""")
def nested(rng: np.random.Generator) -> Launch:
    x = rng.integers(0, 12, 128, np.int32)

    def total(n: int) -> int:
        pairs = [(a, b) for a in range(n) for b in range(a, n)]
        return sum(a * b if a * b & 1 else -n for a, b in pairs)

    expected = np.array([total(int(n)) for n in x], np.int32)
    return Launch([x, np.zeros_like(x)], {1: expected}, grid=(2,))


@MODULE.program("""
    gpu.func @early_exit(%in: memref<?xi32>, %out: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?xi32>
      %zero = arith.constant 0 : i32
      %negative = arith.cmpi slt, %x, %zero : i32
      cf.cond_br %negative, ^end, ^look
    ^look:
      %three = arith.constant 3 : i32
      %m = arith.remui %x, %three : i32
      %nothing = arith.cmpi eq, %m, %zero : i32
      cf.cond_br %nothing, ^put(%zero : i32), ^work
    ^work:
      %y = arith.muli %x, %m : i32
      cf.br ^put(%y : i32)
    ^put(%v: i32):
      memref.store %v, %out[%i] : memref<?xi32>
      cf.br ^end
    ^end:
      gpu.return
    }""")
def early_exit(rng: np.random.Generator) -> Launch:
    x = rng.integers(-1000, 1000, 256, np.int32)
    expected = np.where(x < 0, -7, np.where(x % 3 == 0, 0, x * (x % 3))).astype(np.int32)
    return Launch([x, np.full_like(x, -7)], {1: expected}, grid=(2,), block=(128,))


@MODULE.program("""
    gpu.func @globals(%out: memref<?xf32>) kernel {
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %three = arith.constant 3 : index
      %seven = arith.constant 7 : index
      %one = arith.constant 1 : i64
      %table = memref.get_global @primes : memref<8xi32>
      %scales = memref.get_global @scale : memref<4xf32>
      %count = memref.get_global @seen : memref<1xi64>
      %a = arith.andi %i, %seven : index
      %b = arith.andi %i, %three : index
      %p = memref.load %table[%a] : memref<8xi32>
      %f = arith.sitofp %p : i32 to f32
      %s = memref.load %scales[%b] : memref<4xf32>
      %v = arith.mulf %f, %s : f32
      memref.store %v, %out[%i] : memref<?xf32>
      %old = memref.atomic_rmw addi %one, %count[%zero] : (i64, memref<1xi64>) -> i64
      gpu.return
    }""")
def globals(rng: np.random.Generator) -> Launch:
    """Reads constants, a global that the host has set, and a global that the kernel changes."""
    scale = rng.integers(1, 100, 4).astype(np.float32)
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19], np.float32)
    i = np.arange(256)
    return Launch(
        [np.zeros(256, np.float32)],
        {0: primes[i & 7] * scale[i & 3]},
        grid=(4,),
        symbols={"scale": scale, "seen": np.array([1000])},
        symbols_expected={"scale": scale, "seen": np.array([1256])},
    )
