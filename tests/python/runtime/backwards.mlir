// A kernel that writes one number into each element, the last element first. Thread 32 would write
// before the first element.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @backwards(%data: memref<32xi32>) kernel {
      %thread = gpu.thread_id x
      %last = arith.constant 31 : index
      %i = arith.subi %last, %thread : index
      %one = arith.constant 1 : i32
      memref.store %one, %data[%i] : memref<32xi32>
      gpu.return
    }
  }

  func.func @main() {
    %one = arith.constant 1 : index
    %threads = arith.constant 32 : index
    %t0 = gpu.wait async
    %data, %t1 = gpu.alloc async [%t0] () : memref<32xi32>
    %t2 = gpu.launch_func async [%t1] @kernels::@backwards
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%data : memref<32xi32>)
    %t3 = gpu.dealloc async [%t2] %data : memref<32xi32>
    gpu.wait [%t3]
    return
  }
}
