// A kernel that was compiled for blocks of 64 threads, as gpu-kernel-outlining makes nearly all.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fill(%data: memref<64xi64>, %value: i64)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      memref.store %value, %data[%i] : memref<64xi64>
      gpu.return
    }
  }

  func.func @main() {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %value = arith.constant 9007199254740993 : i64
    %t0 = gpu.wait async
    %data, %t1 = gpu.alloc async [%t0] () : memref<64xi64>
    %t2 = gpu.launch_func async [%t1] @kernels::@fill
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%data : memref<64xi64>, %value : i64)
    %t3 = gpu.dealloc async [%t2] %data : memref<64xi64>
    gpu.wait [%t3]
    return
  }
}
