// Fills a buffer on the GPU with 0, 1, 2 ... 999 and returns the sum, which the runner prints.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @count(%numbers: memref<?xi32>, %size: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %inside = arith.cmpi ult, %i, %size : index
      scf.if %inside {
        %number = arith.index_cast %i : index to i32
        memref.store %number, %numbers[%i] : memref<?xi32>
      }
      gpu.return
    }
  }

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %nothing = arith.constant 0 : i32
    %size = arith.constant 1000 : index
    %blocks = arith.constant 4 : index
    %threads = arith.constant 256 : index
    %host = memref.alloc(%size) : memref<?xi32>
    %start = gpu.wait async
    %device, %allocated = gpu.alloc async [%start] (%size) : memref<?xi32>
    %launched = gpu.launch_func async [%allocated] @kernels::@count
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%device : memref<?xi32>, %size : index)
    %copied = gpu.memcpy async [%launched] %host, %device : memref<?xi32>, memref<?xi32>
    %freed = gpu.dealloc async [%copied] %device : memref<?xi32>
    gpu.wait [%freed]
    %sum = scf.for %i = %zero to %size step %one iter_args(%before = %nothing) -> i32 {
      %number = memref.load %host[%i] : memref<?xi32>
      %after = arith.addi %before, %number : i32
      scf.yield %after : i32
    }
    memref.dealloc %host : memref<?xi32>
    return %sum : i32
  }
}
