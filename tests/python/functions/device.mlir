// Functions that launch a kernel, and functions that return memory of the device's.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%x: memref<?xf32>, %factor: f32, %count: index) kernel {
      %i = gpu.global_id x
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %old = memref.load %x[%i] : memref<?xf32>
        %new = arith.mulf %old, %factor : f32
        memref.store %new, %x[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func @scale(%x: memref<?xf32>, %factor: f32) attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %count = memref.dim %x, %zero : memref<?xf32>
    %most = arith.constant 255 : index
    %up = arith.addi %count, %most : index
    %blocks = arith.divui %up, %threads : index
    gpu.launch_func @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%x : memref<?xf32>, %factor : f32, %count : index)
    return
  }

  // A copy of its argument in device memory, with a factor.
  func.func @scaled(%x: memref<?xf32>, %factor: f32) -> memref<?xf32> {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %count = memref.dim %x, %zero : memref<?xf32>
    %most = arith.constant 255 : index
    %up = arith.addi %count, %most : index
    %blocks = arith.divui %up, %threads : index
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %t2 = gpu.memcpy async [%t1] %d, %x : memref<?xf32>, memref<?xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%d : memref<?xf32>, %factor : f32, %count : index)
    gpu.wait [%t3]
    return %d : memref<?xf32>
  }

  func.func @itself(%x: memref<?xf32>) -> memref<?xf32> {
    return %x : memref<?xf32>
  }

  func.func @blend(%x: memref<?xf32>, %y: memref<?xf32>) {
    return
  }

  func.func @shared() -> memref<8xf32> {
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0 : index
    %made = gpu.alloc host_shared () : memref<8xf32>
    memref.store %one, %made[%zero] : memref<8xf32>
    return %made : memref<8xf32>
  }

  // Fails: no device has so much memory.
  func.func @greedy() {
    %count = arith.constant 1000000000000 : index
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %t2 = gpu.dealloc async [%t1] %d : memref<?xf32>
    gpu.wait [%t2]
    return
  }
}
