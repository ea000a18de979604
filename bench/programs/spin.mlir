// overlap.mlir with kernels that take long: two chains at once, each on its own stream, joined at
// the end of every iteration. If the streams run at once, an iteration takes one kernel's time.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @spin(%data: memref<64xf32>, %amount: f32) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %rounds = arith.constant 400000 : index
      %i = gpu.thread_id x
      %old = memref.load %data[%i] : memref<64xf32>
      %half = arith.constant 0.5 : f32
      // Each step needs the one before, and a float's rounding keeps it from being folded.
      %new = scf.for %round = %zero to %rounds step %one iter_args(%x = %old) -> (f32) {
        %scaled = arith.mulf %x, %half : f32
        %next = arith.addf %scaled, %amount : f32
        scf.yield %next : f32
      }
      memref.store %new, %data[%i] : memref<64xf32>
      gpu.return
    }
  }

  func.func @step(%a: memref<64xf32>, %b: memref<64xf32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %two_f = arith.constant 2.0 : f32
    %three_f = arith.constant 3.0 : f32
    %left = gpu.wait async
    %right = gpu.wait async
    %left_done = gpu.launch_func async [%left] @kernels::@spin
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%a : memref<64xf32>, %two_f : f32)
    %right_done = gpu.launch_func async [%right] @kernels::@spin
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%b : memref<64xf32>, %three_f : f32)
    gpu.wait [%left_done, %right_done]
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 5 : index
    %nothing = arith.constant 0.0 : f32
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
    %u1 = gpu.dealloc async [%u0] %a : memref<64xf32>
    %u2 = gpu.dealloc async [%u1] %b : memref<64xf32>
    gpu.wait [%u2]
    return
  }
}
