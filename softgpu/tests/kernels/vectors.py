"""The vector dialect: wide loads and stores, reductions, masks, gathers, contractions."""

from __future__ import annotations

import numpy as np

from softgpu.tests.kernels.program import Launch, Module

MODULE = Module("vectors", first="convert-vector-to-llvm", sample=True)


@MODULE.program("""
    gpu.func @wide(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
      %i = gpu.global_id x
      %eight = arith.constant 8 : index
      %at = arith.muli %i, %eight : index
      %x = vector.load %in[%at] : memref<?xf32>, vector<8xf32>
      %y = vector.shuffle %x, %x [7, 6, 5, 4, 11, 10, 9, 8] : vector<8xf32>, vector<8xf32>
      %z = vector.fma %x, %y, %x : vector<8xf32>
      vector.store %z, %out[%at] : memref<?xf32>, vector<8xf32>
      gpu.return
    }""")
def wide(rng: np.random.Generator) -> Launch:
    # The numbers are small integers, so the product and the sum are exact with and without fusing.
    x = rng.integers(-1000, 1000, 64 * 8).astype(np.float32)
    expected = (x.reshape(-1, 8) * x.reshape(-1, 8)[:, ::-1] + x.reshape(-1, 8)).ravel()
    return Launch([x, np.zeros_like(x)], {1: expected})


@MODULE.program("""
    gpu.func @narrow_elements(%in: memref<?xi8>, %half: memref<?xf16>, %out: memref<?xi16>)
        kernel {
      %i = gpu.global_id x
      %four = arith.constant 4 : index
      %at = arith.muli %i, %four : index
      %x = vector.load %in[%at] : memref<?xi8>, vector<4xi8>
      %h = vector.load %half[%at] : memref<?xf16>, vector<4xf16>
      %w = arith.extsi %x : vector<4xi8> to vector<4xi16>
      %f = arith.sitofp %w : vector<4xi16> to vector<4xf16>
      %s = arith.addf %f, %h : vector<4xf16>
      %m = arith.mulf %s, %h : vector<4xf16>
      %b = arith.bitcast %m : vector<4xf16> to vector<4xi16>
      %r = arith.xori %b, %w : vector<4xi16>
      vector.store %r, %out[%at] : memref<?xi16>, vector<4xi16>
      gpu.return
    }""")
def narrow_elements(rng: np.random.Generator) -> Launch:
    """Packed arithmetic computes on two f16 numbers in one register."""
    x = rng.integers(-128, 128, 256, np.int8)
    half = rng.normal(0, 10, 256).astype(np.float16)
    product = (x.astype(np.float16) + half) * half
    expected = product.view(np.int16) ^ x.astype(np.int16)
    return Launch([x, half, np.zeros(256, np.int16)], {2: expected})


@MODULE.program("""
    gpu.func @reductions(%in: memref<?xi32>, %out: memref<?x6xi32>) kernel {
      %i = gpu.global_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %at = arith.muli %i, %c4 : index
      %x = vector.load %in[%at] : memref<?xi32>, vector<4xi32>
      %sum = vector.reduction <add>, %x : vector<4xi32> into i32
      %product = vector.reduction <mul>, %x : vector<4xi32> into i32
      %low = vector.reduction <minsi>, %x : vector<4xi32> into i32
      %high = vector.reduction <maxui>, %x : vector<4xi32> into i32
      %all = vector.reduction <and>, %x : vector<4xi32> into i32
      %odd = vector.reduction <xor>, %x : vector<4xi32> into i32
      memref.store %sum, %out[%i, %c0] : memref<?x6xi32>
      memref.store %product, %out[%i, %c1] : memref<?x6xi32>
      memref.store %low, %out[%i, %c2] : memref<?x6xi32>
      memref.store %high, %out[%i, %c3] : memref<?x6xi32>
      memref.store %all, %out[%i, %c4] : memref<?x6xi32>
      memref.store %odd, %out[%i, %c5] : memref<?x6xi32>
      gpu.return
    }""")
def reductions(rng: np.random.Generator) -> Launch:
    x = rng.integers(-(2**31), 2**31, (64, 4), np.int32)
    columns = [
        x.sum(1, np.int32),
        x.prod(1, np.int32),
        x.min(1),
        x.view(np.uint32).max(1).view(np.int32),
        np.bitwise_and.reduce(x, axis=1),
        np.bitwise_xor.reduce(x, axis=1),
    ]
    return Launch([x.ravel(), np.zeros((64, 6), np.int32)], {1: np.stack(columns, axis=1)})


@MODULE.program("""
    gpu.func @masked(%in: memref<?xi32>, %out: memref<?xi32>, %count: index) kernel {
      %i = gpu.global_id x
      %four = arith.constant 4 : index
      %at = arith.muli %i, %four : index
      %left = arith.subi %count, %at : index
      %mask = vector.create_mask %left : vector<4xi1>
      %other = arith.constant dense<-5> : vector<4xi32>
      %x = vector.maskedload %in[%at], %mask, %other
           : memref<?xi32>, vector<4xi1>, vector<4xi32> into vector<4xi32>
      %y = arith.addi %x, %x : vector<4xi32>
      vector.maskedstore %out[%at], %mask, %y
           : memref<?xi32>, vector<4xi1>, vector<4xi32>
      gpu.return
    }""")
def masked(rng: np.random.Generator) -> Launch:
    x = rng.integers(-1000, 1000, 256, np.int32)
    out = np.full_like(x, 77)
    return Launch([x, out, np.int64(201)], {1: np.where(np.arange(256) < 201, 2 * x, 77)})


@MODULE.program("""
    gpu.func @gathered(%in: memref<?xf64>, %where: memref<?xi32>, %out: memref<?xf64>) kernel {
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %at = arith.muli %i, %two : index
      %n = vector.load %where[%at] : memref<?xi32>, vector<2xi32>
      %mask = arith.constant dense<true> : vector<2xi1>
      %none = arith.constant dense<0.0> : vector<2xf64>
      %x = vector.gather %in[%zero] [%n], %mask, %none
           : memref<?xf64>, vector<2xi32>, vector<2xi1>, vector<2xf64> into vector<2xf64>
      %y = arith.negf %x : vector<2xf64>
      vector.store %y, %out[%at] : memref<?xf64>, vector<2xf64>
      gpu.return
    }""")
def gathered(rng: np.random.Generator) -> Launch:
    x = rng.normal(size=100)
    where = rng.integers(0, 100, 128, np.int32)
    return Launch([x, where, np.zeros(128)], {2: -x[where]})


@MODULE.program("""
    gpu.func @inserted(%in: memref<?xi16>, %places: memref<?xi32>, %out: memref<?xi16>) kernel {
      %i = gpu.global_id x
      %eight = arith.constant 8 : index
      %at = arith.muli %i, %eight : index
      %x = vector.load %in[%at] : memref<?xi16>, vector<8xi16>
      %p = memref.load %places[%i] : memref<?xi32>
      %place = arith.index_cast %p : i32 to index
      %e = vector.extract %x[%place] : i16 from vector<8xi16>
      %f = arith.addi %e, %e : i16
      %y = vector.insert %f, %x [%place] : i16 into vector<8xi16>
      vector.store %y, %out[%at] : memref<?xi16>, vector<8xi16>
      gpu.return
    }""")
def inserted(rng: np.random.Generator) -> Launch:
    """Inserts an element at a dynamic index."""
    x = rng.integers(-1000, 1000, (64, 8), np.int16)
    places = rng.integers(0, 8, 64, np.int32)
    expected = x.copy()
    expected[np.arange(64), places] *= 2
    return Launch([x.ravel(), places, np.zeros(512, np.int16)], {2: expected.ravel()})


@MODULE.program("""
    gpu.func @transferred(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
      %i = gpu.global_id x
      %none = arith.constant -1.0 : f32
      %x = vector.transfer_read %in[%i], %none : memref<?xf32>, vector<4xf32>
      %y = arith.addf %x, %x : vector<4xf32>
      %four = arith.constant 4 : index
      %at = arith.muli %i, %four : index
      vector.transfer_write %y, %out[%at] {in_bounds = [true]} : vector<4xf32>, memref<?xf32>
      gpu.return
    }""")
def transferred(rng: np.random.Generator) -> Launch:
    """Reads beyond the end of an array return the program's padding value."""
    x = rng.integers(-1000, 1000, 64).astype(np.float32)
    padded = np.append(x, [-1, -1, -1]).astype(np.float32)
    expected = 2 * np.lib.stride_tricks.sliding_window_view(padded, 4).ravel()
    return Launch([x, np.zeros(256, np.float32)], {1: expected})


@MODULE.program("""
    gpu.func @large_vector(%in: memref<?xi32>, %places: memref<?xi32>, %out: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %three = arith.constant 3 : index
      %size = arith.constant 32 : index
      %at = arith.muli %i, %size : index
      %x = vector.load %in[%at] : memref<?xi32>, vector<32xi32>
      %p = memref.load %places[%i] : memref<?xi32>
      %place = arith.index_cast %p : i32 to index
      %y = scf.for %k = %zero to %three step %one iter_args(%v = %x) -> (vector<32xi32>) {
        %n = arith.addi %place, %k : index
        %m = arith.remui %n, %size : index
        %e = vector.extract %v[%m] : i32 from vector<32xi32>
        %f = arith.muli %e, %p : i32
        %g = arith.addi %f, %p : i32
        %next = arith.addi %m, %one : index
        %o = arith.remui %next, %size : index
        %u = vector.insert %g, %v [%o] : i32 into vector<32xi32>
        scf.yield %u : vector<32xi32>
      }
      vector.store %y, %out[%at] : memref<?xi32>, vector<32xi32>
      gpu.return
    }""")
def large_vector(rng: np.random.Generator) -> Launch:
    """The kernel indexes a vector by a value that differs between lanes. The vector is too large
    for a chain of comparisons."""
    x = rng.integers(-1000, 1000, (64, 32), np.int32)
    places = rng.integers(1, 32, 64, np.int32)
    expected = x.copy()
    rows = np.arange(64)
    for k in range(3):
        at = (places + k) % 32
        expected[rows, (at + 1) % 32] = expected[rows, at] * places + places
    return Launch([x.ravel(), places, np.zeros(64 * 32, np.int32)], {2: expected.ravel()})


@MODULE.program("""
    gpu.func @in_workgroup(%in: memref<?xf32>, %shift: memref<?xi32>, %out: memref<?xf32>)
        workgroup(%s: memref<300xf32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %at = arith.muli %t, %four : index
      %x = vector.load %in[%at] : memref<?xf32>, vector<4xf32>
      vector.store %x, %s[%at]
          : memref<300xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      gpu.barrier
      %n = memref.load %shift[%t] : memref<?xi32>
      %from = arith.index_cast %n : i32 to index
      %y = vector.load %s[%from]
           : memref<300xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %z = vector.load %s[%at] : memref<300xf32, #gpu.address_space<workgroup>>, vector<3xf32>
      %y3 = vector.extract_strided_slice %y {offsets = [1], sizes = [3], strides = [1]}
            : vector<4xf32> to vector<3xf32>
      %sum = arith.addf %y3, %z : vector<3xf32>
      %whole = vector.insert_strided_slice %sum, %y {offsets = [1], strides = [1]}
               : vector<3xf32> into vector<4xf32>
      vector.store %whole, %out[%at] : memref<?xf32>, vector<4xf32>
      gpu.return
    }""")
def in_workgroup(rng: np.random.Generator) -> Launch:
    """Tests loads of vectors from workgroup memory. A vector may begin at any element, so the
    address is often unaligned."""
    x = rng.normal(size=256).astype(np.float32)
    shift = rng.integers(0, 252, 64, np.int32)
    y = x[shift[:, None] + np.arange(4)]
    y[:, 1:] += x.reshape(64, 4)[:, :3]
    return Launch([x, shift, np.zeros_like(x)], {2: y.ravel()})
