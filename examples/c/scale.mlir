// Multiplies numbers by a factor on the GPU: those of a host buffer, or those of a device buffer.
// linked.cpp and outside_stream.c call the two functions as _mlir_ciface_scale and
// _mlir_ciface_scale_on_device.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%data: memref<?xf32>, %factor: f32, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 64 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %old = memref.load %data[%i] : memref<?xf32>
        %new = arith.mulf %old, %factor : f32
        memref.store %new, %data[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func @scale(%host: memref<?xf32>, %factor: f32) attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %count = memref.dim %host, %zero : memref<?xf32>
    %blocks = arith.ceildivui %count, %threads : index
    %start = gpu.wait async
    %device, %allocated = gpu.alloc async [%start] (%count) : memref<?xf32>
    %copied = gpu.memcpy async [%allocated] %device, %host : memref<?xf32>, memref<?xf32>
    %launched = gpu.launch_func async [%copied] @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%device : memref<?xf32>, %factor : f32, %count : index)
    %back = gpu.memcpy async [%launched] %host, %device : memref<?xf32>, memref<?xf32>
    %freed = gpu.dealloc async [%back] %device : memref<?xf32>
    gpu.wait [%freed]
    return
  }

  func.func @scale_on_device(%device: memref<?xf32>, %factor: f32)
      attributes {llvm.emit_c_interface} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %count = memref.dim %device, %zero : memref<?xf32>
    %blocks = arith.ceildivui %count, %threads : index
    %start = gpu.wait async
    %launched = gpu.launch_func async [%start] @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%device : memref<?xf32>, %factor : f32, %count : index)
    gpu.wait [%launched]
    return
  }
}
