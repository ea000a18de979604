// c = a + b over 1000 elements: registered host memory, device buffers, a memset, one token chain.
// The last block is a partial one. Prints the memref c: 3.75 everywhere.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @vecadd(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %count: index) kernel {
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %x = memref.load %a[%i] : memref<?xf32>
        %y = memref.load %b[%i] : memref<?xf32>
        %sum = arith.addf %x, %y : f32
        memref.store %sum, %c[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = arith.constant 1000 : index
    %blocks = arith.constant 4 : index
    %threads = arith.constant 256 : index
    %left = arith.constant 1.5 : f32
    %right = arith.constant 2.25 : f32
    %nothing = arith.constant 0.0 : f32
    %ha = memref.alloc(%count) : memref<?xf32>
    %hb = memref.alloc(%count) : memref<?xf32>
    %hc = memref.alloc(%count) : memref<?xf32>
    scf.for %i = %zero to %count step %one {
      memref.store %left, %ha[%i] : memref<?xf32>
      memref.store %right, %hb[%i] : memref<?xf32>
    }
    %ua = memref.cast %ha : memref<?xf32> to memref<*xf32>
    %ub = memref.cast %hb : memref<?xf32> to memref<*xf32>
    %uc = memref.cast %hc : memref<?xf32> to memref<*xf32>
    gpu.host_register %ua : memref<*xf32>
    gpu.host_register %ub : memref<*xf32>
    gpu.host_register %uc : memref<*xf32>
    %t0 = gpu.wait async
    %da, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %db, %t2 = gpu.alloc async [%t1] (%count) : memref<?xf32>
    %dc, %t3 = gpu.alloc async [%t2] (%count) : memref<?xf32>
    %t4 = gpu.memcpy async [%t3] %da, %ha : memref<?xf32>, memref<?xf32>
    %t5 = gpu.memcpy async [%t4] %db, %hb : memref<?xf32>, memref<?xf32>
    %t6 = gpu.memset async [%t5] %dc, %nothing : memref<?xf32>, f32
    %t7 = gpu.launch_func async [%t6] @kernels::@vecadd
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%da : memref<?xf32>, %db : memref<?xf32>, %dc : memref<?xf32>, %count : index)
    %t8 = gpu.memcpy async [%t7] %hc, %dc : memref<?xf32>, memref<?xf32>
    %t9 = gpu.dealloc async [%t8] %da : memref<?xf32>
    %t10 = gpu.dealloc async [%t9] %db : memref<?xf32>
    %t11 = gpu.dealloc async [%t10] %dc : memref<?xf32>
    gpu.wait [%t11]
    call @printMemrefF32(%uc) : (memref<*xf32>) -> ()
    gpu.host_unregister %ua : memref<*xf32>
    gpu.host_unregister %ub : memref<*xf32>
    gpu.host_unregister %uc : memref<*xf32>
    memref.dealloc %ha : memref<?xf32>
    memref.dealloc %hb : memref<?xf32>
    memref.dealloc %hc : memref<?xf32>
    return
  }
}
