  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %wide = arith.constant 64 : index
    %end = arith.constant 127 : index
    %count = arith.constant 128 : index
    %nothing = arith.constant 0.0 : f32
    %status = arith.constant 7 : i32
    %host = memref.alloc(%count) : memref<?xf32>
    %picks = memref.alloc(%count) : memref<?xi32>
    scf.for %i = %zero to %count step %one {
      %back = arith.subi %end, %i : index
      %pick = arith.index_cast %back : index to i32
      %number = arith.sitofp %pick : i32 to f32
      memref.store %pick, %picks[%i] : memref<?xi32>
      memref.store %number, %host[%i] : memref<?xf32>
    }
    %t0 = gpu.wait async
    %in, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %at, %t2 = gpu.alloc async [%t1] (%count) : memref<?xi32>
    %out, %t3 = gpu.alloc async [%t2] (%count) : memref<?xf32>
    %t4 = gpu.memcpy async [%t3] %in, %host : memref<?xf32>, memref<?xf32>
    %t5 = gpu.memcpy async [%t4] %at, %picks : memref<?xi32>, memref<?xi32>
    %t6 = gpu.memset async [%t5] %out, %nothing : memref<?xf32>, f32
    %t7 = gpu.launch_func async [%t6] @kernels::@KERNEL
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xf32>, %at : memref<?xi32>, %out : memref<?xf32>)
    %t8 = gpu.memcpy async [%t7] %host, %out : memref<?xf32>, memref<?xf32>
    %t9 = gpu.dealloc async [%t8] %in : memref<?xf32>
    %t10 = gpu.dealloc async [%t9] %at : memref<?xi32>
    %t11 = gpu.dealloc async [%t10] %out : memref<?xf32>
    gpu.wait [%t11]
    memref.dealloc %picks : memref<?xi32>
    memref.dealloc %host : memref<?xf32>
    return %status : i32
  }
