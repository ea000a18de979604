// Values that nothing wrote, and what is done with them: a kernel each. Each reads %in, which the
// host only allocates. The last ones do what is no use.
#workgroup = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @branch(%out: memref<?xi32>, %in: memref<?xi32>) kernel {
      %zero = arith.constant 0 : index
      %none = arith.constant 0 : i32
      %x = memref.load %in[%zero] : memref<?xi32>
      %big = arith.cmpi sgt, %x, %none : i32
      scf.if %big { // branch
        gpu.barrier
        memref.store %none, %out[%zero] : memref<?xi32>
      }
      gpu.return
    }
    gpu.func @address(%out: memref<?xi32>, %in: memref<?xi32>) kernel {
      %none = arith.constant 0 : i32
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?xi32>
      %at = arith.index_cast %x : i32 to index
      memref.store %none, %out[%at] : memref<?xi32> // address
      gpu.return
    }
    gpu.func @host(%out: memref<?xi32>, %in: memref<?xi32>) kernel {
      %one = arith.constant 1 : i32
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?xi32>
      %y = arith.addi %x, %one : i32
      memref.store %y, %out[%i] : memref<?xi32> // host
      gpu.return
    }
    // Half of the group's memory is written.
    gpu.func @tile(%out: memref<?xi32>) workgroup(%tile: memref<64xi32, #workgroup>) kernel {
      %half = arith.constant 32 : index
      %i = gpu.thread_id x
      %number = arith.index_cast %i : index to i32
      %low = arith.cmpi ult, %i, %half : index
      scf.if %low {
        memref.store %number, %tile[%i] : memref<64xi32, #workgroup>
      }
      gpu.barrier
      %x = memref.load %tile[%i] : memref<64xi32, #workgroup>
      memref.store %x, %out[%i] : memref<?xi32>
      gpu.return
    }
    // A copy on the device, bits that do not matter, and a value that is not chosen.
    gpu.func @no_use(%out: memref<?xi32>, %in: memref<?xi32>, %moved: memref<?xi32>) kernel {
      %none = arith.constant 0 : i32
      %seven = arith.constant 7 : i32
      %sixteen = arith.constant 16 : i32
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?xi32>
      memref.store %x, %moved[%i] : memref<?xi32>
      %high = arith.shli %x, %sixteen : i32
      %low = arith.andi %high, %seven : i32
      %number = arith.index_cast %i : index to i32
      %never = arith.cmpi slt, %number, %none : i32
      %chosen = arith.select %never, %x, %low : i32
      memref.store %chosen, %out[%i] : memref<?xi32>
      gpu.return
    }
  }

  func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>

  func.func @main() -> i32 {
    %one = arith.constant 1 : index
    %count = arith.constant 64 : index
    %status = arith.constant 0 : i32
    %host = memref.alloc(%count) : memref<?xi32>
    %unranked = memref.cast %host : memref<?xi32> to memref<*xi32>
    gpu.host_register %unranked : memref<*xi32>
    %seen = func.call @mgpuMemGetDeviceMemRef1dInt32(%host) : (memref<?xi32>) -> memref<?xi32>
    %back = memref.alloc(%count) : memref<?xi32>
    %t0 = gpu.wait async
    %in, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %out, %t2 = gpu.alloc async [%t1] (%count) : memref<?xi32>
    %moved, %t3 = gpu.alloc async [%t2] (%count) : memref<?xi32>
    %t4 = gpu.launch_func async [%t3] @kernels::@no_use
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %in : memref<?xi32>, %moved : memref<?xi32>)
    %t5 = gpu.memcpy async [%t4] %back, %out : memref<?xi32>, memref<?xi32>
    %t6 = gpu.launch_func async [%t5] @kernels::@branch
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %in : memref<?xi32>)
    %t7 = gpu.launch_func async [%t6] @kernels::@address
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%out : memref<?xi32>, %in : memref<?xi32>)
    %t8 = gpu.launch_func async [%t7] @kernels::@host
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%seen : memref<?xi32>, %in : memref<?xi32>)
    %t9 = gpu.launch_func async [%t8] @kernels::@tile
        blocks in (%one, %one, %one) threads in (%count, %one, %one) args(%out : memref<?xi32>)
    %t10 = gpu.memcpy async [%t9] %back, %out : memref<?xi32>, memref<?xi32> // tile
    %t11 = gpu.dealloc async [%t10] %in : memref<?xi32>
    %t12 = gpu.dealloc async [%t11] %out : memref<?xi32>
    %t13 = gpu.dealloc async [%t12] %moved : memref<?xi32>
    gpu.wait [%t13]
    gpu.host_unregister %unranked : memref<*xi32>
    memref.dealloc %back : memref<?xi32>
    memref.dealloc %host : memref<?xi32>
    return %status : i32
  }
}
