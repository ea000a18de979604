// Batches of random length: allocate a batch and a buffer four times as long, copy in, two launches,
// copy out, free. Each step adds one to the elements of the batch. Prints the number of iterations,
// and the number of batches that had more than half of the elements.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Writes each element of the batch to four places.
    gpu.func @widen(%batch: memref<?xf32>, %wide: memref<?xf32>, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %four = arith.constant 4 : index
      %value = memref.load %batch[%i] : memref<?xf32>
      scf.for %copy = %zero to %four step %one {
        %offset = arith.muli %copy, %count : index
        %place = arith.addi %offset, %i : index
        memref.store %value, %wide[%place] : memref<?xf32>
      }
      gpu.return
    }

    // Writes one more than the mean of the four places.
    gpu.func @narrow(%wide: memref<?xf32>, %batch: memref<?xf32>, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %four = arith.constant 4 : index
      %nothing = arith.constant 0.0 : f32
      %one_f = arith.constant 1.0 : f32
      %quarter = arith.constant 0.25 : f32
      %sum = scf.for %copy = %zero to %four step %one iter_args(%so_far = %nothing) -> (f32) {
        %offset = arith.muli %copy, %count : index
        %place = arith.addi %offset, %i : index
        %value = memref.load %wide[%place] : memref<?xf32>
        %more = arith.addf %so_far, %value : f32
        scf.yield %more : f32
      }
      %mean = arith.mulf %sum, %quarter : f32
      %new = arith.addf %mean, %one_f : f32
      memref.store %new, %batch[%i] : memref<?xf32>
      gpu.return
    }
  }

  memref.global "private" @random : memref<1xi32> = dense<1>

  func.func private @printF32(f32)
  func.func private @printNewline()

  // The length of a batch, from 1 to 256 rows of 256 elements: the high bits of Knuth's generator.
  func.func @draw() -> index {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %factor = arith.constant 1664525 : i32
    %more = arith.constant 1013904223 : i32
    %shift = arith.constant 24 : i32
    %state = memref.get_global @random : memref<1xi32>
    %old = memref.load %state[%zero] : memref<1xi32>
    %product = arith.muli %old, %factor : i32
    %new = arith.addi %product, %more : i32
    memref.store %new, %state[%zero] : memref<1xi32>
    %high = arith.shrui %new, %shift : i32
    %drawn = arith.index_castui %high : i32 to index
    %rows = arith.addi %drawn, %one : index
    return %rows : index
  }

  func.func @step(%host: memref<?xf32>, %rows: index) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %threads = arith.constant 256 : index
    %count = arith.muli %rows, %threads : index
    %wide_count = arith.muli %count, %four : index
    %here = memref.reinterpret_cast %host to offset: [0], sizes: [%count], strides: [1]
        : memref<?xf32> to memref<?xf32>
    %start = gpu.wait async
    %batch, %t0 = gpu.alloc async [%start] (%count) : memref<?xf32>
    %wide, %t1 = gpu.alloc async [%t0] (%wide_count) : memref<?xf32>
    %t2 = gpu.memcpy async [%t1] %batch, %here : memref<?xf32>, memref<?xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@widen
        blocks in (%rows, %one, %one) threads in (%threads, %one, %one)
        args(%batch : memref<?xf32>, %wide : memref<?xf32>, %count : index)
    %t4 = gpu.launch_func async [%t3] @kernels::@narrow
        blocks in (%rows, %one, %one) threads in (%threads, %one, %one)
        args(%wide : memref<?xf32>, %batch : memref<?xf32>, %count : index)
    %t5 = gpu.memcpy async [%t4] %here, %batch : memref<?xf32>, memref<?xf32>
    %t6 = gpu.dealloc async [%t5] %batch : memref<?xf32>
    %t7 = gpu.dealloc async [%t6] %wide : memref<?xf32>
    gpu.wait [%t7]
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 10 : index
    %count = arith.constant 65536 : index
    %half = arith.constant 32768 : index
    %nothing = arith.constant 0.0 : f32
    %host = memref.alloc(%count) : memref<?xf32>
    scf.for %i = %zero to %count step %one {
      memref.store %nothing, %host[%i] : memref<?xf32>
    }
    scf.for %i = %zero to %iterations step %one {
      %rows = func.call @draw() : () -> index
      func.call @step(%host, %rows) : (memref<?xf32>, index) -> ()
    }
    %steps = memref.load %host[%zero] : memref<?xf32>
    func.call @printF32(%steps) : (f32) -> ()
    func.call @printNewline() : () -> ()
    %long = memref.load %host[%half] : memref<?xf32>
    func.call @printF32(%long) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<?xf32>
    return
  }
}
