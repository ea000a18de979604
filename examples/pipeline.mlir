// Two streams work on the two halves of an array: a half is copied up, doubled and copied down
// while the other half is on its way. Tokens order the operations of a half; gpu.wait joins both.
// Returns the sum of the 128 results, 128 * 42 = 5376.
//
//     mgpu-rt run --entry halves pipeline.mlir
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @double(%data: memref<64xi64>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      %old = memref.load %data[%i] : memref<64xi64>
      %new = arith.addi %old, %old : i64
      memref.store %new, %data[%i] : memref<64xi64>
      gpu.return
    }
  }

  func.func @halves() -> i64 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %value = arith.constant 21 : i64
    %none = arith.constant 0 : i64
    %left = memref.alloc() : memref<64xi64>
    %right = memref.alloc() : memref<64xi64>
    scf.for %i = %c0 to %c64 step %c1 {
      memref.store %value, %left[%i] : memref<64xi64>
      memref.store %value, %right[%i] : memref<64xi64>
    }

    %l0 = gpu.wait async
    %l, %l1 = gpu.alloc async [%l0] () : memref<64xi64>
    %l2 = gpu.memcpy async [%l1] %l, %left : memref<64xi64>, memref<64xi64>
    %l3 = gpu.launch_func async [%l2] @kernels::@double
        blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%l : memref<64xi64>)
    %l4 = gpu.memcpy async [%l3] %left, %l : memref<64xi64>, memref<64xi64>
    %l5 = gpu.dealloc async [%l4] %l : memref<64xi64>

    %r0 = gpu.wait async
    %r, %r1 = gpu.alloc async [%r0] () : memref<64xi64>
    %r2 = gpu.memcpy async [%r1] %r, %right : memref<64xi64>, memref<64xi64>
    %r3 = gpu.launch_func async [%r2] @kernels::@double
        blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%r : memref<64xi64>)
    %r4 = gpu.memcpy async [%r3] %right, %r : memref<64xi64>, memref<64xi64>
    %r5 = gpu.dealloc async [%r4] %r : memref<64xi64>
    gpu.wait [%l5, %r5]

    %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%before = %none) -> i64 {
      %x = memref.load %left[%i] : memref<64xi64>
      %y = memref.load %right[%i] : memref<64xi64>
      %both = arith.addi %x, %y : i64
      %after = arith.addi %before, %both : i64
      scf.yield %after : i64
    }
    memref.dealloc %left : memref<64xi64>
    memref.dealloc %right : memref<64xi64>
    return %sum : i64
  }
}
