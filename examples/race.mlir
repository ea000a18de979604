// Each of 128 threads adds a number that one of the first 64 has put into workgroup memory. A
// gpu.barrier is missing between the store and the load: the sum, 42, is right only if the first
// wavefront runs first. `mgpu-rt check` reports the race (docs/check.md).
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add_earlier(%data: memref<?xi64>)
        workgroup(%tile: memref<128xi64, #gpu.address_space<workgroup>>) kernel {
      %half = arith.constant 64 : index
      %i = gpu.thread_id x
      %old = memref.load %data[%i] : memref<?xi64>
      memref.store %old, %tile[%i] : memref<128xi64, #gpu.address_space<workgroup>>
      %earlier = arith.remui %i, %half : index
      %other = memref.load %tile[%earlier] : memref<128xi64, #gpu.address_space<workgroup>>
      %new = arith.addi %old, %other : i64
      memref.store %new, %data[%i] : memref<?xi64>
      gpu.return
    }
  }

  func.func private @printI64(i64)
  func.func private @printNewline()

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = arith.constant 128 : index
    %first = arith.constant 21 : i64
    %status = arith.constant 0 : i32
    %host = memref.alloc(%count) : memref<?xi64>
    scf.for %i = %zero to %count step %one {
      memref.store %first, %host[%i] : memref<?xi64>
    }
    %t0 = gpu.wait async
    %data, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi64>
    %t2 = gpu.memcpy async [%t1] %data, %host : memref<?xi64>, memref<?xi64>
    %t3 = gpu.launch_func async [%t2] @kernels::@add_earlier
        blocks in (%one, %one, %one) threads in (%count, %one, %one) args(%data : memref<?xi64>)
    %t4 = gpu.memcpy async [%t3] %host, %data : memref<?xi64>, memref<?xi64>
    %t5 = gpu.dealloc async [%t4] %data : memref<?xi64>
    gpu.wait [%t5]
    %last = arith.subi %count, %one : index
    %value = memref.load %host[%last] : memref<?xi64>
    func.call @printI64(%value) : (i64) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<?xi64>
    return %status : i32
  }
}
