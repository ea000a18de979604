module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fill(%m: memref<256xf32>, %step: index) kernel {
      %t = gpu.thread_id x
      %i = arith.muli %t, %step : index
      %c = arith.constant 1.0 : f32
      memref.store %c, %m[%i] : memref<256xf32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    // A tebibyte further, no process has memory.
    %step = arith.constant 274877906949 : index
    %t = gpu.wait async
    %m, %t0 = gpu.alloc async [%t] () : memref<256xf32>
    %t1 = gpu.launch_func async [%t0] @kernels::@fill blocks in (%c1, %c1, %c1)
        threads in (%c2, %c1, %c1) args(%m : memref<256xf32>, %step : index)
    %t2 = gpu.dealloc async [%t1] %m : memref<256xf32>
    gpu.wait [%t2]
    return
  }
}
