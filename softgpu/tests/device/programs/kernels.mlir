// Kernels for the tests of the device. Only empty and empty_args need no more than an end.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @empty() kernel {
      gpu.return
    }

    gpu.func @empty_args(%a: i64, %b: i32, %c: f64) kernel {
      gpu.return
    }

    // What the device libraries do after setting a signal that has an event.
    gpu.func @ring(%mailbox: i64, %event: i64) kernel {
      %pointer = llvm.inttoptr %mailbox : i64 to !llvm.ptr<1>
      llvm.store %event, %pointer : i64, !llvm.ptr<1>
      %low_byte = arith.constant 255 : i64
      %carried = arith.andi %event, %low_byte : i64
      %data = arith.trunci %carried : i64 to i32
      %interrupt = arith.constant 1 : i32
      llvm.call_intrinsic "llvm.amdgcn.s.sendmsg"(%interrupt, %data) : (i32, i32) -> ()
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
