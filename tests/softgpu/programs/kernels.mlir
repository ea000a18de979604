// Kernels for the tests of the device. Only empty and empty_args need no more than an end.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @empty() kernel {
      gpu.return
    }

    gpu.func @empty_args(%a: i64, %b: i32, %c: f64) kernel {
      gpu.return
    }

    // out[i] = value + i
    gpu.func @store(%out: memref<?xi32>, %value: i32) kernel {
      %i = gpu.thread_id x
      %j = arith.index_cast %i : index to i32
      %sum = arith.addi %value, %j : i32
      memref.store %sum, %out[%i] : memref<?xi32>
      gpu.return
    }

    // Sets flags[mine], then waits until flags[other] is set: two of these on two queues end only
    // if both make progress.
    gpu.func @meet(%flags: memref<?xi32>, %mine: index, %other: index) kernel {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %set = memref.atomic_rmw ori %one, %flags[%mine] : (i32, memref<?xi32>) -> i32
      scf.while : () -> () {
        %seen = memref.atomic_rmw ori %zero, %flags[%other] : (i32, memref<?xi32>) -> i32
        %again = arith.cmpi eq, %seen, %zero : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
      gpu.return
    }
  }
}
