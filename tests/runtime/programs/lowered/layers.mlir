// A chain of layers as a compiler lowers it: temporaries of different sizes, each alive from the
// layer that writes it to the one that reads it. Prints three times the number of iterations, since
// each layer adds one to every element.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @layer(%from: memref<?xf32>, %to: memref<?xf32>, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %one = arith.constant 1.0 : f32
        %old = memref.load %from[%i] : memref<?xf32>
        %new = arith.addf %old, %one : f32
        memref.store %new, %to[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  // A function of its own: what a launch puts on the stack is gone when it returns.
  func.func @step(%host: memref<?xf32>, %count: index) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %blocks = arith.constant 4 : index
    %threads = arith.constant 256 : index
    %wide = arith.muli %count, %two : index
    %wider = arith.muli %count, %three : index
    %start = gpu.wait async
    %a, %a_there = gpu.alloc async [%start] (%count) : memref<?xf32>
    %copied = gpu.memcpy async [%a_there] %a, %host : memref<?xf32>, memref<?xf32>
    %b, %b_there = gpu.alloc async [%copied] (%wide) : memref<?xf32>
    %first = gpu.launch_func async [%b_there] @kernels::@layer
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%a : memref<?xf32>, %b : memref<?xf32>, %count : index)
    %a_freed = gpu.dealloc async [%first] %a : memref<?xf32>
    %c, %c_there = gpu.alloc async [%a_freed] (%wider) : memref<?xf32>
    %second = gpu.launch_func async [%c_there] @kernels::@layer
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%b : memref<?xf32>, %c : memref<?xf32>, %count : index)
    %b_freed = gpu.dealloc async [%second] %b : memref<?xf32>
    %d, %d_there = gpu.alloc async [%b_freed] (%count) : memref<?xf32>
    %third = gpu.launch_func async [%d_there] @kernels::@layer
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%c : memref<?xf32>, %d : memref<?xf32>, %count : index)
    %c_freed = gpu.dealloc async [%third] %c : memref<?xf32>
    %back = gpu.memcpy async [%c_freed] %host, %d : memref<?xf32>, memref<?xf32>
    %d_freed = gpu.dealloc async [%back] %d : memref<?xf32>
    gpu.wait [%d_freed]
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
