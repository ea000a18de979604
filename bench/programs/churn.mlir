// A step of a training loop as a compiler writes it: allocate, copy in, launch, copy out, free.
// Prints the number of iterations, since each step adds one to every element.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @increment(%data: memref<?xf32>, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %one = arith.constant 1.0 : f32
        %old = memref.load %data[%i] : memref<?xf32>
        %new = arith.addf %old, %one : f32
        memref.store %new, %data[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  // A function of its own: what a launch puts on the stack is gone when it returns.
  func.func @step(%host: memref<?xf32>, %count: index) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %blocks = arith.constant 4 : index
    %threads = arith.constant 256 : index
    %start = gpu.wait async
    %device, %allocated = gpu.alloc async [%start] (%count) : memref<?xf32>
    %copied = gpu.memcpy async [%allocated] %device, %host : memref<?xf32>, memref<?xf32>
    %launched = gpu.launch_func async [%copied] @kernels::@increment
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%device : memref<?xf32>, %count : index)
    %back = gpu.memcpy async [%launched] %host, %device : memref<?xf32>, memref<?xf32>
    %freed = gpu.dealloc async [%back] %device : memref<?xf32>
    gpu.wait [%freed]
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    %count = arith.constant 1000 : index
    %nothing = arith.constant 0.0 : f32
    %host = memref.alloc(%count) : memref<?xf32>
    scf.for %i = %zero to %count step %one {
      memref.store %nothing, %host[%i] : memref<?xf32>
    }
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%host, %count) : (memref<?xf32>, index) -> ()
    }
    %last = arith.subi %count, %one : index
    %result = memref.load %host[%last] : memref<?xf32>
    func.call @printF32(%result) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<?xf32>
    return
  }
}
