// A cache of keys and values that grows by a row with each token, as in a decoder. A step allocates
// keys, values and scores of the new length, copies the old rows, and frees the old blocks. Each call
// of main begins where the last call ended, until 8192 rows, so that few sizes occur again. Row r after
// the first row has the value r; prints the sum of 2 r.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Copies the old rows, and adds a row that is one more than the last row.
    gpu.func @extend(%old: memref<?xf32>, %new: memref<?xf32>, %count: index) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %one = arith.constant 1.0 : f32
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %is_old = arith.cmpi ult, %i, %count : index
      scf.if %is_old {
        %value = memref.load %old[%i] : memref<?xf32>
        memref.store %value, %new[%i] : memref<?xf32>
      } else {
        %before = arith.subi %i, %width : index
        %last = memref.load %old[%before] : memref<?xf32>
        %value = arith.addf %last, %one : f32
        memref.store %value, %new[%i] : memref<?xf32>
      }
      gpu.return
    }

    gpu.func @score(%keys: memref<?xf32>, %values: memref<?xf32>, %scores: memref<?xf32>) kernel {
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %width = arith.constant 256 : index
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %key = memref.load %keys[%i] : memref<?xf32>
      %value = memref.load %values[%i] : memref<?xf32>
      %sum = arith.addf %key, %value : f32
      memref.store %sum, %scores[%i] : memref<?xf32>
      gpu.return
    }

    // Adds the last row of scores, which begins at `first`, to the total.
    gpu.func @add_up(%scores: memref<?xf32>, %total: memref<256xf32>, %first: index) kernel {
      %thread = gpu.thread_id x
      %i = arith.addi %first, %thread : index
      %score = memref.load %scores[%i] : memref<?xf32>
      %old = memref.load %total[%thread] : memref<256xf32>
      %new = arith.addf %old, %score : f32
      memref.store %new, %total[%thread] : memref<256xf32>
      gpu.return
    }
  }

  memref.global "private" @rows : memref<1xindex> = dense<64>

  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @step(%keys: memref<?xf32>, %values: memref<?xf32>, %total: memref<256xf32>,
                  %rows: index) -> (memref<?xf32>, memref<?xf32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %count = arith.muli %rows, %threads : index
    %new_count = arith.addi %count, %threads : index
    %blocks = arith.addi %rows, %one : index
    %start = gpu.wait async
    %new_keys, %t0 = gpu.alloc async [%start] (%new_count) : memref<?xf32>
    %new_values, %t1 = gpu.alloc async [%t0] (%new_count) : memref<?xf32>
    %scores, %t2 = gpu.alloc async [%t1] (%new_count) : memref<?xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@extend
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%keys : memref<?xf32>, %new_keys : memref<?xf32>, %count : index)
    %t4 = gpu.launch_func async [%t3] @kernels::@extend
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%values : memref<?xf32>, %new_values : memref<?xf32>, %count : index)
    %t5 = gpu.launch_func async [%t4] @kernels::@score
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%new_keys : memref<?xf32>, %new_values : memref<?xf32>, %scores : memref<?xf32>)
    %t6 = gpu.launch_func async [%t5] @kernels::@add_up
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%scores : memref<?xf32>, %total : memref<256xf32>, %count : index)
    %t7 = gpu.dealloc async [%t6] %keys : memref<?xf32>
    %t8 = gpu.dealloc async [%t7] %values : memref<?xf32>
    %t9 = gpu.dealloc async [%t8] %scores : memref<?xf32>
    gpu.wait [%t9]
    return %new_keys, %new_values : memref<?xf32>, memref<?xf32>
  }

  // Returns the number of rows at the begin of a call of main, and stores the number at its end.
  func.func @begin(%iterations: index) -> index {
    %zero = arith.constant 0 : index
    %least = arith.constant 64 : index
    %most = arith.constant 8192 : index
    %kept = memref.get_global @rows : memref<1xindex>
    %last = memref.load %kept[%zero] : memref<1xindex>
    %sum = arith.addi %last, %iterations : index
    %fits = arith.cmpi ule, %sum, %most : index
    %rows = arith.select %fits, %last, %least : index
    %end = arith.addi %rows, %iterations : index
    memref.store %end, %kept[%zero] : memref<1xindex>
    return %rows : index
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 40 : index
    %width = arith.constant 256 : index
    %nothing = arith.constant 0.0 : f32
    %first = func.call @begin(%iterations) : (index) -> index
    %end = arith.addi %first, %iterations : index
    %count = arith.muli %first, %width : index
    %host = memref.alloc() : memref<256xf32>
    %t0 = gpu.wait async
    %keys, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %values, %t2 = gpu.alloc async [%t1] (%count) : memref<?xf32>
    %total, %t3 = gpu.alloc async [%t2] () : memref<256xf32>
    %t4 = gpu.memset async [%t3] %keys, %nothing : memref<?xf32>, f32
    %t5 = gpu.memset async [%t4] %values, %nothing : memref<?xf32>, f32
    %t6 = gpu.memset async [%t5] %total, %nothing : memref<256xf32>, f32
    gpu.wait [%t6]
    %all:2 = scf.for %rows = %first to %end step %one
        iter_args(%k = %keys, %v = %values) -> (memref<?xf32>, memref<?xf32>) {
      %new:2 = func.call @step(%k, %v, %total, %rows)
          : (memref<?xf32>, memref<?xf32>, memref<256xf32>, index) -> (memref<?xf32>, memref<?xf32>)
      scf.yield %new#0, %new#1 : memref<?xf32>, memref<?xf32>
    }
    %u0 = gpu.wait async
    %u1 = gpu.memcpy async [%u0] %host, %total : memref<256xf32>, memref<256xf32>
    %u2 = gpu.dealloc async [%u1] %all#0 : memref<?xf32>
    %u3 = gpu.dealloc async [%u2] %all#1 : memref<?xf32>
    %u4 = gpu.dealloc async [%u3] %total : memref<256xf32>
    gpu.wait [%u4]
    %result = memref.load %host[%one] : memref<256xf32>
    func.call @printF32(%result) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<256xf32>
    return
  }
}
