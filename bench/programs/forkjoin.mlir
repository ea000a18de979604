// Two chains on two streams that join: MLIR's own way to use two streams. Each step allocates in both
// chains, and frees both blocks after the join. MLIR never destroys the streams of joined chains.
// Prints 2 + 3.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%data: memref<4096xf32>, %factor: f32) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = gpu.block_dim x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %old = memref.load %data[%i] : memref<4096xf32>
      %new = arith.mulf %old, %factor : f32
      memref.store %new, %data[%i] : memref<4096xf32>
      gpu.return
    }

    gpu.func @join(%to: memref<4096xf32>, %from: memref<4096xf32>) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = gpu.block_dim x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %a = memref.load %to[%i] : memref<4096xf32>
      %b = memref.load %from[%i] : memref<4096xf32>
      %new = arith.addf %a, %b : f32
      memref.store %new, %to[%i] : memref<4096xf32>
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @step(%in: memref<4096xf32>, %out: memref<4096xf32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %blocks = arith.constant 16 : index
    %threads = arith.constant 256 : index
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %left = gpu.wait async
    %x, %x0 = gpu.alloc async [%left] () : memref<4096xf32>
    %x1 = gpu.memcpy async [%x0] %x, %in : memref<4096xf32>, memref<4096xf32>
    %x2 = gpu.launch_func async [%x1] @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%x : memref<4096xf32>, %two : f32)
    %right = gpu.wait async
    %y, %y0 = gpu.alloc async [%right] () : memref<4096xf32>
    %y1 = gpu.memcpy async [%y0] %y, %in : memref<4096xf32>, memref<4096xf32>
    %y2 = gpu.launch_func async [%y1] @kernels::@scale
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%y : memref<4096xf32>, %three : f32)
    %both = gpu.wait async [%x2, %y2]
    %joined = gpu.launch_func async [%both] @kernels::@join
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%x : memref<4096xf32>, %y : memref<4096xf32>)
    %back = gpu.memcpy async [%joined] %out, %x : memref<4096xf32>, memref<4096xf32>
    %x_freed = gpu.dealloc async [%back] %x : memref<4096xf32>
    %freed = gpu.dealloc async [%x_freed] %y : memref<4096xf32>
    gpu.wait [%freed]
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 20 : index
    %count = arith.constant 4096 : index
    %one_f = arith.constant 1.0 : f32
    %in = memref.alloc() : memref<4096xf32>
    %out = memref.alloc() : memref<4096xf32>
    scf.for %i = %zero to %count step %one {
      memref.store %one_f, %in[%i] : memref<4096xf32>
    }
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%in, %out) : (memref<4096xf32>, memref<4096xf32>) -> ()
    }
    %last = arith.constant 4095 : index
    %result = memref.load %out[%last] : memref<4096xf32>
    func.call @printF32(%result) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %in : memref<4096xf32>
    memref.dealloc %out : memref<4096xf32>
    return
  }
}
