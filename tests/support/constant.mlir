// A kernel that reads a constant, which HIP knows by its name.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external constant @factor(1 : i32) {addr_space = 4 : i32} : i32

    gpu.func @read(%out: memref<1xi32>) kernel {
      %address = llvm.mlir.addressof @factor : !llvm.ptr<4>
      %value = llvm.load volatile %address : !llvm.ptr<4> -> i32
      %zero = arith.constant 0 : index
      memref.store %value, %out[%zero] : memref<1xi32>
      gpu.return
    }
  }
}
