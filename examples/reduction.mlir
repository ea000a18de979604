// Adds the numbers 0 to 255 on the GPU: each thread stores its number in workgroup memory, and half
// of the threads add in each of eight steps, with a barrier after it. Prints 32640.
//
//     mgpu-rt run --entry sum reduction.mlir
//     mgpu-rt check --entry sum reduction.mlir    # without the second gpu.barrier: a race
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%result: memref<1xi64>) workgroup(%part: memref<256xi64, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c128 = arith.constant 128 : index
      %i = gpu.thread_id x
      %own = arith.index_cast %i : index to i64
      memref.store %own, %part[%i] : memref<256xi64, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %distance = arith.shrui %c128, %step : index
        %adds = arith.cmpi ult, %i, %distance : index
        scf.if %adds {
          %other = arith.addi %i, %distance : index
          %x = memref.load %part[%i] : memref<256xi64, #gpu.address_space<workgroup>>
          %y = memref.load %part[%other] : memref<256xi64, #gpu.address_space<workgroup>>
          %sum = arith.addi %x, %y : i64
          memref.store %sum, %part[%i] : memref<256xi64, #gpu.address_space<workgroup>>
        }
        gpu.barrier
      }
      %first = arith.cmpi eq, %i, %c0 : index
      scf.if %first {
        %total = memref.load %part[%c0] : memref<256xi64, #gpu.address_space<workgroup>>
        memref.store %total, %result[%c0] : memref<1xi64>
      }
      gpu.return
    }
  }

  func.func @sum() -> i64 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %host = memref.alloc() : memref<1xi64>
    %device = gpu.alloc () : memref<1xi64>
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%device : memref<1xi64>)
    gpu.memcpy %host, %device : memref<1xi64>, memref<1xi64>
    gpu.dealloc %device : memref<1xi64>
    %total = memref.load %host[%c0] : memref<1xi64>
    memref.dealloc %host : memref<1xi64>
    return %total : i64
  }
}
