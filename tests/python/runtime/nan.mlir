// Two kernels over 64 elements: the first halves them, the second divides zero by zero in element 5.
// Both take as many elements as there are threads.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @halve(%data: memref<64xf32>) kernel {
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %half = arith.constant 0.5 : f32
      %old = memref.load %data[%i] : memref<64xf32>
      %new = arith.mulf %old, %half : f32
      memref.store %new, %data[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @spoil(%data: memref<64xf32>) kernel {
      %five = arith.constant 5 : index
      %old = memref.load %data[%five] : memref<64xf32>
      %zero = arith.subf %old, %old : f32
      %new = arith.divf %zero, %zero : f32
      memref.store %new, %data[%five] : memref<64xf32>
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 32 : index
    %blocks = arith.constant 2 : index
    %count = arith.constant 64 : index
    %value = arith.constant 8.0 : f32
    %host = memref.alloc() : memref<64xf32>
    scf.for %i = %zero to %count step %one {
      memref.store %value, %host[%i] : memref<64xf32>
    }
    %t0 = gpu.wait async
    %data, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
    %t2 = gpu.memcpy async [%t1] %data, %host : memref<64xf32>, memref<64xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@halve
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%data : memref<64xf32>)
    %t4 = gpu.launch_func async [%t3] @kernels::@halve
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%data : memref<64xf32>)
    %t5 = gpu.launch_func async [%t4] @kernels::@spoil
        blocks in (%one, %one, %one) threads in (%one, %one, %one)
        args(%data : memref<64xf32>)
    %t6 = gpu.memcpy async [%t5] %host, %data : memref<64xf32>, memref<64xf32>
    %t7 = gpu.dealloc async [%t6] %data : memref<64xf32>
    gpu.wait [%t7]
    %result = memref.load %host[%one] : memref<64xf32>
    func.call @printF32(%result) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<64xf32>
    return
  }
}
