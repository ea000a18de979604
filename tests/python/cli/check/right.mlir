// Each thread of two blocks adds its neighbour in workgroup memory to its element. Without a fault:
// the tests put one in, by another line in place of one of these.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @twice(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %x = memref.load %in[%i] : memref<?xf32>
      %sum = arith.addf %x, %x : f32
      memref.store %sum, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @reverse(%out: memref<?xf32>)
        workgroup(%tile: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %thread = gpu.thread_id x
      %last = arith.constant 63 : index
      %other = arith.subi %last, %thread : index
      %x = memref.load %out[%thread] : memref<?xf32>
      memref.store %x, %tile[%other] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %y = memref.load %tile[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %y, %out[%thread] : memref<?xf32>
      gpu.return
    }
  }

  func.func @main() -> i32 {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %wide = arith.constant 64 : index
    %count = arith.constant 128 : index
    %nothing = arith.constant 0.0 : f32
    %status = arith.constant 7 : i32
    %host = memref.alloc(%count) : memref<?xf32>
    %t0 = gpu.wait async
    %in, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %out, %t2 = gpu.alloc async [%t1] (%count) : memref<?xf32>
    %t3 = gpu.memset async [%t2] %in, %nothing : memref<?xf32>, f32
    %t4 = gpu.memset async [%t3] %out, %nothing : memref<?xf32>, f32
    %t5 = gpu.launch_func async [%t4] @kernels::@twice
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xf32>, %out : memref<?xf32>)
    %t6 = gpu.launch_func async [%t5] @kernels::@reverse
        blocks in (%one, %one, %one) threads in (%wide, %one, %one)
        args(%out : memref<?xf32>)
    %t7 = gpu.memcpy async [%t6] %host, %out : memref<?xf32>, memref<?xf32>
    %t8 = gpu.dealloc async [%t7] %in : memref<?xf32>
    %t9 = gpu.dealloc async [%t8] %out : memref<?xf32>
    gpu.wait [%t9]
    memref.dealloc %host : memref<?xf32>
    return %status : i32
  }
}
