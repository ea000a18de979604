// The sum of the squares of `count` numbers from `first` on: squared on the GPU, added here.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @square(%squares: memref<?xi64>, %first: i64, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %start = arith.muli %block, %width : index
      %i = arith.addi %start, %thread : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %offset = arith.index_cast %i : index to i64
        %number = arith.addi %first, %offset : i64
        %square = arith.muli %number, %number : i64
        memref.store %square, %squares[%i] : memref<?xi64>
      }
      gpu.return
    }
  }

  func.func @sum_of_squares(%first: i64, %numbers: i64) -> i64 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %nothing = arith.constant 0 : i64
    %count = arith.index_cast %numbers : i64 to index
    %blocks = arith.ceildivui %count, %threads : index
    %host = memref.alloc(%count) : memref<?xi64>
    %start = gpu.wait async
    %device, %allocated = gpu.alloc async [%start] (%count) : memref<?xi64>
    %launched = gpu.launch_func async [%allocated] @kernels::@square
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%device : memref<?xi64>, %first : i64, %count : index)
    %copied = gpu.memcpy async [%launched] %host, %device : memref<?xi64>, memref<?xi64>
    %freed = gpu.dealloc async [%copied] %device : memref<?xi64>
    gpu.wait [%freed]
    %sum = scf.for %i = %zero to %count step %one iter_args(%before = %nothing) -> i64 {
      %square = memref.load %host[%i] : memref<?xi64>
      %after = arith.addi %before, %square : i64
      scf.yield %after : i64
    }
    memref.dealloc %host : memref<?xi64>
    return %sum : i64
  }
}
