// A launch in an async.execute, for which the host waits by the event that the region yields.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @double(%numbers: memref<?xi32>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %numbers[%i] : memref<?xi32>
      %y = arith.addi %x, %x : i32
      memref.store %y, %numbers[%i] : memref<?xi32>
      gpu.return
    }
  }

  func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>
  func.func private @printMemrefI32(memref<*xi32>)

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %seven = arith.constant 7 : i32
    %numbers = memref.alloc(%four) : memref<?xi32>
    scf.for %i = %zero to %four step %one {
      memref.store %seven, %numbers[%i] : memref<?xi32>
    }
    %unranked = memref.cast %numbers : memref<?xi32> to memref<*xi32>
    gpu.host_register %unranked : memref<*xi32>
    %seen = func.call @mgpuMemGetDeviceMemRef1dInt32(%numbers) : (memref<?xi32>) -> memref<?xi32>
    %launched = async.execute {
      gpu.launch_func @kernels::@double
          blocks in (%one, %one, %one) threads in (%four, %one, %one) args(%seen : memref<?xi32>)
      async.yield
    }
    async.await %launched : !async.token
    func.call @printMemrefI32(%unranked) : (memref<*xi32>) -> ()
    gpu.host_unregister %unranked : memref<*xi32>
    memref.dealloc %numbers : memref<?xi32>
    return
  }
}
