// Kernels that print through HIP's hostcall service.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // One line a lane, with numbers that differ by lane; then on with the work.
    gpu.func @lanes(%scale: i32, %out: memref<210xi32>) kernel {
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %i32 = arith.index_cast %i : index to i32
      %scaled = arith.muli %i32, %scale : i32
      %float = arith.sitofp %scaled : i32 to f32
      %quarter = arith.constant 0.25 : f32
      %product = arith.mulf %float, %quarter : f32
      %b = arith.index_cast %block : index to i32
      gpu.printf "block %d item %d scaled %d quarter %.2f\0A", %b, %i32, %scaled, %product : i32, i32, i32, f32
      memref.store %scaled, %out[%i] : memref<210xi32>
      gpu.return
    }

    // More arguments than one packet carries, wide ones, and text longer than a packet.
    gpu.func @wide(%big: i64) kernel {
      %thread = gpu.thread_id x
      %zero = arith.constant 0 : index
      %chosen = arith.cmpi eq, %thread, %zero : index
      scf.if %chosen {
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant -2 : i32
        %c3 = arith.constant 3.5 : f32
        %c4 = arith.constant 1.0e-300 : f64
        %c5 = arith.constant 255 : i32
        gpu.printf "100%% %d %d %g %g %x %ld %d %d %d %d\0A", %c1, %c2, %c3, %c4, %c5, %big, %c1, %c2, %c1, %c2 : i32, i32, f32, f64, i32, i64, i32, i32, i32, i32
        gpu.printf "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789 the end\0A"
      }
      gpu.return
    }
  }

  func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

  func.func @one_stream(%out: memref<210xi32>) {
    %one = arith.constant 1 : index
    %blocks = arith.constant 3 : index
    %threads = arith.constant 70 : index
    %scale = arith.constant -3 : i32
    %big = arith.constant 1234567890123456789 : i64
    %t0 = gpu.wait async
    %device, %t1 = gpu.alloc async [%t0] () : memref<210xi32>
    %t2 = gpu.launch_func async [%t1] @kernels::@lanes blocks in (%blocks, %one, %one)
        threads in (%threads, %one, %one) args(%scale : i32, %device : memref<210xi32>)
    %t3 = gpu.launch_func async [%t2] @kernels::@wide blocks in (%one, %one, %one)
        threads in (%threads, %one, %one) args(%big : i64)
    %t4 = gpu.memcpy async [%t3] %out, %device : memref<210xi32>, memref<210xi32>
    %t5 = gpu.dealloc async [%t4] %device : memref<210xi32>
    gpu.wait [%t5]
    return
  }

  // Both kernels at once.
  func.func @two_streams(%out: memref<210xi32>) {
    %one = arith.constant 1 : index
    %blocks = arith.constant 3 : index
    %threads = arith.constant 70 : index
    %scale = arith.constant -3 : i32
    %big = arith.constant 1234567890123456789 : i64
    %t0 = gpu.wait async
    %device, %t1 = gpu.alloc async [%t0] () : memref<210xi32>
    %t2 = gpu.launch_func async [%t1] @kernels::@lanes blocks in (%blocks, %one, %one)
        threads in (%threads, %one, %one) args(%scale : i32, %device : memref<210xi32>)
    %u0 = gpu.wait async
    %u1 = gpu.launch_func async [%u0] @kernels::@wide blocks in (%one, %one, %one)
        threads in (%threads, %one, %one) args(%big : i64)
    gpu.wait [%u1]
    %t3 = gpu.memcpy async [%t2] %out, %device : memref<210xi32>, memref<210xi32>
    %t4 = gpu.dealloc async [%t3] %device : memref<210xi32>
    gpu.wait [%t4]
    return
  }

  func.func @main() {
    %out = memref.alloc() : memref<210xi32>
    func.call @one_stream(%out) : (memref<210xi32>) -> ()
    %unranked = memref.cast %out : memref<210xi32> to memref<*xi32>
    func.call @printMemrefI32(%unranked) : (memref<*xi32>) -> ()
    return
  }
}
