// Kernels that have bodies in the stub, a function that waits for its kernel, and one that does not.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @increment(%x: memref<?xf32>, %count: index) kernel {
      gpu.return
    }
    gpu.func @layer(%from: memref<?xf32>, %to: memref<?xf32>, %count: index) kernel {
      gpu.return
    }
  }

  func.func @increment(%x: memref<?xf32>) attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = memref.dim %x, %zero : memref<?xf32>
    %t0 = gpu.wait async
    %t1 = gpu.launch_func async [%t0] @kernels::@increment
        blocks in (%one, %one, %one) threads in (%one, %one, %one)
        args(%x : memref<?xf32>, %count : index)
    return
  }

  func.func @layer(%from: memref<?xf32>, %to: memref<?xf32>) attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = memref.dim %from, %zero : memref<?xf32>
    gpu.launch_func @kernels::@layer
        blocks in (%one, %one, %one) threads in (%one, %one, %one)
        args(%from : memref<?xf32>, %to : memref<?xf32>, %count : index)
    return
  }

  func.func @copied(%x: memref<?xf32>) -> memref<?xf32> attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = memref.dim %x, %zero : memref<?xf32>
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %t2 = gpu.launch_func async [%t1] @kernels::@layer
        blocks in (%one, %one, %one) threads in (%one, %one, %one)
        args(%x : memref<?xf32>, %d : memref<?xf32>, %count : index)
    return %d : memref<?xf32>
  }

  func.func @itself(%x: memref<?xf32>) -> memref<?xf32> attributes {llvm.emit_c_interface} {
    return %x : memref<?xf32>
  }
}
