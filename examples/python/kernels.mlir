// Kernels for the examples, and functions that launch them on an array of the host's or the device's.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %count: index) kernel {
      %i = gpu.global_id x
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %x = memref.load %a[%i] : memref<?xf32>
        %y = memref.load %b[%i] : memref<?xf32>
        %sum = arith.addf %x, %y : f32
        memref.store %sum, %c[%i] : memref<?xf32>
      }
      gpu.return
    }

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

  func.func @scale_on_device(%x: memref<?xf32>, %factor: f32) attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %count = memref.dim %x, %zero : memref<?xf32>
    %blocks = arith.ceildivui %count, %threads : index
    gpu.launch_func @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%x : memref<?xf32>, %factor : f32, %count : index)
    return
  }

  func.func @scale_on_host(%x: memref<?xf32>, %factor: f32) attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %count = memref.dim %x, %zero : memref<?xf32>
    %blocks = arith.ceildivui %count, %threads : index
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %t2 = gpu.memcpy async [%t1] %d, %x : memref<?xf32>, memref<?xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%d : memref<?xf32>, %factor : f32, %count : index)
    %t4 = gpu.memcpy async [%t3] %x, %d : memref<?xf32>, memref<?xf32>
    %t5 = gpu.dealloc async [%t4] %d : memref<?xf32>
    gpu.wait [%t5]
    return
  }
}
