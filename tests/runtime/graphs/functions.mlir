// Functions that the tests have replayed as graphs (mgpu-rt lower --graph).
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%x: memref<64xf32>, %factor: f32) kernel {
      %i = gpu.thread_id x
      %old = memref.load %x[%i] : memref<64xf32>
      %new = arith.mulf %old, %factor : f32
      memref.store %new, %x[%i] : memref<64xf32>
      gpu.return
    }
  }

  // Allocates, copies both ways, frees, and waits at its end.
  func.func @scale(%x: memref<64xf32>, %factor: f32) {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
    %t2 = gpu.memcpy async [%t1] %d, %x : memref<64xf32>, memref<64xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@scale
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%d : memref<64xf32>, %factor : f32)
    %t4 = gpu.memcpy async [%t3] %x, %d : memref<64xf32>, memref<64xf32>
    %t5 = gpu.dealloc async [%t4] %d : memref<64xf32>
    gpu.wait [%t5]
    return
  }

  // Calls another one twice.
  func.func @twice(%x: memref<64xf32>, %factor: f32) {
    call @scale(%x, %factor) : (memref<64xf32>, f32) -> ()
    call @scale(%x, %factor) : (memref<64xf32>, f32) -> ()
    return
  }

  // Has a name that LLVM escapes.
  func.func @"größe $"(%x: memref<64xf32>, %factor: f32) {
    call @scale(%x, %factor) : (memref<64xf32>, f32) -> ()
    return
  }

  // Have names that would come beside @twice.
  func.func @twice.graph() {
    return
  }
  func.func @twice.name() {
    return
  }

  // Calls itself: `times` times in all.
  func.func @again(%x: memref<64xf32>, %factor: f32, %times: index) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %more = arith.cmpi ne, %times, %zero : index
    scf.if %more {
      func.call @scale(%x, %factor) : (memref<64xf32>, f32) -> ()
      %left = arith.subi %times, %one : index
      func.call @again(%x, %factor, %left) : (memref<64xf32>, f32, index) -> ()
    }
    return
  }

  // Registers memory, which no graph can.
  func.func @registered(%x: memref<64xf32>, %factor: f32) {
    %any = memref.cast %x : memref<64xf32> to memref<*xf32>
    gpu.host_register %any : memref<*xf32>
    call @scale(%x, %factor) : (memref<64xf32>, f32) -> ()
    gpu.host_unregister %any : memref<*xf32>
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %calls = arith.constant 10 : index
    %words = arith.constant 64 : index
    %factor = arith.constant 2.0 : f32
    %begin = arith.constant 1.0 : f32
    %x = memref.alloc() : memref<64xf32>
    scf.for %i = %zero to %words step %one {
      memref.store %begin, %x[%i] : memref<64xf32>
    }
    scf.for %i = %zero to %calls step %one {
      func.call @scale(%x, %factor) : (memref<64xf32>, f32) -> ()
    }
    memref.dealloc %x : memref<64xf32>
    return
  }

  func.func @sum(%x: memref<64xf32>) -> f32 {
    %zero = arith.constant 0 : index
    %first = memref.load %x[%zero] : memref<64xf32>
    return %first : f32
  }

  func.func @unranked(%x: memref<*xf32>) {
    return
  }
}
