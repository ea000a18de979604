// Fork and join by tokens, which lowers to events; also the default device, host-shared memory, a
// 16-bit memset and dynamic workgroup memory. No result: the calls are the point.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @touch(%data: memref<8xf32>) kernel {
      gpu.return
    }
  }

  func.func @main() {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %workgroup_bytes = arith.constant 4096 : i32
    %device = arith.constant 0 : i32
    %half = arith.constant 0.0 : f16
    gpu.set_default_device %device

    %s0 = gpu.wait async
    %a, %a0 = gpu.alloc async [%s0] () : memref<8xf32>
    %s1 = gpu.wait async
    %b, %b0 = gpu.alloc async [%s1] () : memref<8xf32>
    %s2 = gpu.wait async
    %h, %h0 = gpu.alloc async [%s2] () : memref<8xf16>
    %shared = gpu.alloc host_shared () : memref<8xf32>
    %h1 = gpu.memset async [%h0] %h, %half : memref<8xf16>, f16
    %a1 = gpu.launch_func async [%a0] @kernels::@touch
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        dynamic_shared_memory_size %workgroup_bytes args(%a : memref<8xf32>)
    %b1 = gpu.launch_func async [%b0] @kernels::@touch
        blocks in (%one, %one, %one) threads in (%threads, %one, %one) args(%b : memref<8xf32>)

    %joined = gpu.wait async [%a1, %b1, %h1]
    %copied = gpu.memcpy async [%joined] %b, %a : memref<8xf32>, memref<8xf32>
    gpu.wait [%copied]
    gpu.wait [%a1, %b1]

    gpu.launch_func @kernels::@touch
        blocks in (%one, %one, %one) threads in (%threads, %one, %one) args(%shared : memref<8xf32>)
    return
  }
}
