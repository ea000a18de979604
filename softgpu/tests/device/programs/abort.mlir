// A kernel that checks what it was given: what cf.assert would mean, were it lowered.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @check(%limit: i32) kernel {
      %thread = gpu.thread_id x
      %i = arith.index_cast %thread : index to i32
      %bad = arith.cmpi eq, %i, %limit : i32
      scf.if %bad {
        gpu.printf "item %d is out of bounds\0A", %i : i32
        llvm.intr.trap
      }
      gpu.return
    }
  }

  func.func @main() {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %limit = arith.constant 42 : i32
    gpu.launch_func @kernels::@check blocks in (%one, %one, %one)
        threads in (%threads, %one, %one) args(%limit : i32)
    return
  }
}
