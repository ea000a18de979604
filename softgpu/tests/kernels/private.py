"""A work-item's private memory: arrays with a dynamic index, spills, calls."""

from __future__ import annotations

import numpy as np

from softgpu.tests.kernels.program import Launch, Module

PRIVATE = "#gpu.address_space<private>"

_HELPERS = """
    func.func @mixed(%x: i32, %rounds: index) -> i32
        attributes {passthrough = ["noinline"]} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %factor = arith.constant 1664525 : i32
      %more = arith.constant 1013904223 : i32
      %r = scf.for %k = %zero to %rounds step %one iter_args(%v = %x) -> (i32) {
        %m = arith.muli %v, %factor : i32
        %n = arith.addi %m, %more : i32
        scf.yield %n : i32
      }
      return %r : i32
    }
    func.func @twice(%x: i32, %rounds: index) -> i32 attributes {passthrough = ["noinline"]} {
      %a = func.call @mixed(%x, %rounds) : (i32, index) -> i32
      %b = func.call @mixed(%a, %rounds) : (i32, index) -> i32
      %c = arith.xori %a, %b : i32
      return %c : i32
    }
    func.func @fibonacci(%n: i32) -> i32 attributes {passthrough = ["noinline"]} {
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %leaf = arith.cmpi sle, %n, %one : i32
      %r = scf.if %leaf -> (i32) {
        scf.yield %n : i32
      } else {
        %less = arith.subi %n, %one : i32
        %least = arith.subi %n, %two : i32
        %a = func.call @fibonacci(%less) : (i32) -> i32
        %b = func.call @fibonacci(%least) : (i32) -> i32
        %s = arith.addi %a, %b : i32
        scf.yield %s : i32
      }
      return %r : i32
    }"""

MODULE = Module("private", prelude=_HELPERS, sample=True, unoptimised=True)


def _mixed(x: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    result = x.copy()
    for k in range(int(rounds.max())):
        result = np.where(k < rounds, result * np.int32(1664525) + np.int32(1013904223), result)
    return result


@MODULE.program("""
    gpu.func @called(%in: memref<?xi32>, %out: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %seven = arith.constant 7 : index
      %rounds = arith.remui %i, %seven : index
      %x = memref.load %in[%i] : memref<?xi32>
      %y = func.call @twice(%x, %rounds) : (i32, index) -> i32
      memref.store %y, %out[%i] : memref<?xi32>
      gpu.return
    }""")
def called(rng: np.random.Generator) -> Launch:
    """Calls a noinline function that calls another function twice. The number of rounds differs
    between lanes."""
    x = rng.integers(-(2**31), 2**31, 256, np.int32)
    rounds = np.arange(256) % 7
    first = _mixed(x, rounds)
    expected = first ^ _mixed(first, rounds)
    return Launch([x, np.zeros_like(x)], {1: expected}, grid=(2,), block=(128,))


@MODULE.program("""
    gpu.func @recursive(%in: memref<?xi32>, %out: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?xi32>
      %y = func.call @fibonacci(%x) : (i32) -> i32
      memref.store %y, %out[%i] : memref<?xi32>
      gpu.return
    }""")
def recursive(rng: np.random.Generator) -> Launch:
    """Each lane recurses to a different depth."""
    numbers = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34], np.int32)
    x = rng.integers(0, len(numbers), 64, np.int32)
    return Launch([x, np.zeros_like(x)], {1: numbers[x]})


@MODULE.program(f"""
    gpu.func @indexed_array(%in: memref<?xi32>, %which: memref<?xi32>, %out: memref<?xi32>)
        private(%own: memref<40xi32, {PRIVATE}>) kernel {{
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %size = arith.constant 40 : index
      %x = memref.load %in[%i] : memref<?xi32>
      scf.for %k = %zero to %size step %one {{
        %n = arith.index_cast %k : index to i32
        %v = arith.muli %n, %x : i32
        memref.store %v, %own[%k] : memref<40xi32, {PRIVATE}>
      }}
      %w = memref.load %which[%i] : memref<?xi32>
      %at = arith.index_cast %w : i32 to index
      %old = memref.load %own[%at] : memref<40xi32, {PRIVATE}>
      %new = arith.addi %old, %w : i32
      memref.store %new, %own[%at] : memref<40xi32, {PRIVATE}>
      %sum0 = arith.constant 0 : i32
      %sum = scf.for %k = %zero to %size step %one iter_args(%s = %sum0) -> (i32) {{
        %v = memref.load %own[%k] : memref<40xi32, {PRIVATE}>
        %t = arith.xori %v, %s : i32
        %u = arith.addi %t, %v : i32
        scf.yield %u : i32
      }}
      memref.store %sum, %out[%i] : memref<?xi32>
      gpu.return
    }}""")
def indexed_array(rng: np.random.Generator) -> Launch:
    x = rng.integers(-1000, 1000, 256, np.int32)
    which = rng.integers(0, 40, 256, np.int32)
    own = np.arange(40, dtype=np.int32) * x[:, None]
    own[np.arange(256), which] += which
    total = np.zeros_like(x)
    for k in range(40):
        total = (own[:, k] ^ total) + own[:, k]
    return Launch([x, which, np.zeros_like(x)], {2: total}, grid=(2,), block=(128,))


def _many_values(count: int) -> str:
    """Returns a kernel with more live values than a work-item's registers can hold if the group has
    1024 work-items."""
    lines = []
    for n in range(count):
        lines += [
            f"%k{n} = arith.constant {n} : index",
            f"%at{n} = arith.addi %i, %k{n} : index",
            f"%x{n} = memref.load %in[%at{n}] : memref<?xf32>",
        ]
    lines += ["gpu.barrier", "%s0 = arith.constant 0.0 : f32"]
    for n in range(count):
        other = (n * 37 + 11) % count
        lines += [
            f"%p{n} = arith.mulf %x{n}, %x{other} : f32",
            f"%s{n + 1} = arith.addf %s{n}, %p{n} : f32",
        ]
    body = "\n".join(lines)
    return f"""
    gpu.func @spills(%in: memref<?xf32>, %out: memref<?xf32>)
        kernel attributes {{rocdl.flat_work_group_size = "1024,1024", rocdl.waves_per_eu = 8}} {{
      %i = gpu.thread_id x
      {body}
      memref.store %s{count}, %out[%i] : memref<?xf32>
      gpu.return
    }}"""


SPILLED = 150


@MODULE.program(_many_values(SPILLED))
def spills(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=1024 + SPILLED).astype(np.float32)
    total = np.zeros(1024, np.float32)
    for n in range(SPILLED):
        other = (n * 37 + 11) % SPILLED
        total += x[n : n + 1024] * x[other : other + 1024]
    return Launch([x, np.zeros(1024, np.float32)], {1: total}, block=(1024,))
