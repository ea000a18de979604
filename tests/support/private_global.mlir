// A kernel that counts its launches in a writable global, of which no exported symbol tells.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global internal @launches(0 : i32) {addr_space = 1 : i32} : i32

    gpu.func @count(%out: memref<1xi32>) kernel {
      %address = llvm.mlir.addressof @launches : !llvm.ptr<1>
      %old = llvm.load volatile %address : !llvm.ptr<1> -> i32
      %one = arith.constant 1 : i32
      %new = arith.addi %old, %one : i32
      llvm.store volatile %new, %address : i32, !llvm.ptr<1>
      %zero = arith.constant 0 : index
      memref.store %new, %out[%zero] : memref<1xi32>
      gpu.return
    }
  }
}
