// Three chains of work, each on its own stream, and a launch that depends on all of them. Each
// dependency is an event that is created, recorded, waited for and destroyed. LLVM 22 and older
// join tokens by a gpu.wait before the launch. Later ones take them on the launch itself, and make
// an event for each but the first. Prints the sum of the chains: six times the iterations.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%data: memref<64xf32>, %amount: f32) kernel {
      %i = gpu.thread_id x
      %old = memref.load %data[%i] : memref<64xf32>
      %new = arith.addf %old, %amount : f32
      memref.store %new, %data[%i] : memref<64xf32>
      gpu.return
    }

    gpu.func @sum(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>,
                  %out: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %of_a = memref.load %a[%i] : memref<64xf32>
      %of_b = memref.load %b[%i] : memref<64xf32>
      %of_c = memref.load %c[%i] : memref<64xf32>
      %two = arith.addf %of_a, %of_b : f32
      %three = arith.addf %two, %of_c : f32
      memref.store %three, %out[%i] : memref<64xf32>
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @step(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>,
                  %out: memref<64xf32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %one_f = arith.constant 1.0 : f32
    %two_f = arith.constant 2.0 : f32
    %three_f = arith.constant 3.0 : f32
    %first = gpu.wait async
    %second = gpu.wait async
    %third = gpu.wait async
    %a_done = gpu.launch_func async [%first] @kernels::@add
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%a : memref<64xf32>, %one_f : f32)
    %b_done = gpu.launch_func async [%second] @kernels::@add
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%b : memref<64xf32>, %two_f : f32)
    %c_done = gpu.launch_func async [%third] @kernels::@add
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%c : memref<64xf32>, %three_f : f32)
    %all_done = gpu.wait async [%a_done, %b_done, %c_done]
    %summed = gpu.launch_func async [%all_done] @kernels::@sum
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%a : memref<64xf32>, %b : memref<64xf32>, %c : memref<64xf32>, %out : memref<64xf32>)
    gpu.wait [%summed]
    gpu.wait [%a_done, %b_done, %c_done]
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    %nothing = arith.constant 0.0 : f32
    %host = memref.alloc() : memref<64xf32>
    %t0 = gpu.wait async
    %a, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
    %b, %t2 = gpu.alloc async [%t1] () : memref<64xf32>
    %c, %t3 = gpu.alloc async [%t2] () : memref<64xf32>
    %out, %t4 = gpu.alloc async [%t3] () : memref<64xf32>
    %t5 = gpu.memset async [%t4] %a, %nothing : memref<64xf32>, f32
    %t6 = gpu.memset async [%t5] %b, %nothing : memref<64xf32>, f32
    %t7 = gpu.memset async [%t6] %c, %nothing : memref<64xf32>, f32
    gpu.wait [%t7]
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%a, %b, %c, %out)
          : (memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
    }
    %u0 = gpu.wait async
    %u1 = gpu.memcpy async [%u0] %host, %out : memref<64xf32>, memref<64xf32>
    %u2 = gpu.dealloc async [%u1] %a : memref<64xf32>
    %u3 = gpu.dealloc async [%u2] %b : memref<64xf32>
    %u4 = gpu.dealloc async [%u3] %c : memref<64xf32>
    %u5 = gpu.dealloc async [%u4] %out : memref<64xf32>
    gpu.wait [%u5]
    %sum = memref.load %host[%one] : memref<64xf32>
    func.call @printF32(%sum) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<64xf32>
    return
  }
}
