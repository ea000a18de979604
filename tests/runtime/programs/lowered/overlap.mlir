// Two chains of work at once, each on its own stream, joined at the end of every iteration.
// Each chain adds to its own buffer; prints both sums: twice the iterations, then three times.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%data: memref<64xf32>, %amount: f32) kernel {
      %i = gpu.thread_id x
      %old = memref.load %data[%i] : memref<64xf32>
      %new = arith.addf %old, %amount : f32
      memref.store %new, %data[%i] : memref<64xf32>
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @step(%a: memref<64xf32>, %b: memref<64xf32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %two_f = arith.constant 2.0 : f32
    %three_f = arith.constant 3.0 : f32
    %left = gpu.wait async
    %right = gpu.wait async
    %left_done = gpu.launch_func async [%left] @kernels::@add
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%a : memref<64xf32>, %two_f : f32)
    %right_done = gpu.launch_func async [%right] @kernels::@add
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%b : memref<64xf32>, %three_f : f32)
    gpu.wait [%left_done, %right_done]
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    %nothing = arith.constant 0.0 : f32
    %ha = memref.alloc() : memref<64xf32>
    %hb = memref.alloc() : memref<64xf32>
    %t0 = gpu.wait async
    %a, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
    %b, %t2 = gpu.alloc async [%t1] () : memref<64xf32>
    %t3 = gpu.memset async [%t2] %a, %nothing : memref<64xf32>, f32
    %t4 = gpu.memset async [%t3] %b, %nothing : memref<64xf32>, f32
    gpu.wait [%t4]
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%a, %b) : (memref<64xf32>, memref<64xf32>) -> ()
    }
    %u0 = gpu.wait async
    %u1 = gpu.memcpy async [%u0] %ha, %a : memref<64xf32>, memref<64xf32>
    %u2 = gpu.memcpy async [%u1] %hb, %b : memref<64xf32>, memref<64xf32>
    %u3 = gpu.dealloc async [%u2] %a : memref<64xf32>
    %u4 = gpu.dealloc async [%u3] %b : memref<64xf32>
    gpu.wait [%u4]
    %sum_a = memref.load %ha[%one] : memref<64xf32>
    %sum_b = memref.load %hb[%one] : memref<64xf32>
    func.call @printF32(%sum_a) : (f32) -> ()
    func.call @printNewline() : () -> ()
    func.call @printF32(%sum_b) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %ha : memref<64xf32>
    memref.dealloc %hb : memref<64xf32>
    return
  }
}
