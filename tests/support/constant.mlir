// A kernel that adds two constants. HIP knows one by its name; the other is the image's own.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external constant @factor(1 : i32) {addr_space = 4 : i32} : i32
    llvm.mlir.global internal constant @own(0 : i32) {addr_space = 4 : i32} : i32

    gpu.func @read(%out: memref<1xi32>) kernel {
      %address = llvm.mlir.addressof @factor : !llvm.ptr<4>
      %value = llvm.load volatile %address : !llvm.ptr<4> -> i32
      %own = llvm.mlir.addressof @own : !llvm.ptr<4>
      %none = llvm.load volatile %own : !llvm.ptr<4> -> i32
      %sum = arith.addi %value, %none : i32
      %zero = arith.constant 0 : index
      memref.store %sum, %out[%zero] : memref<1xi32>
      gpu.return
    }
  }
}
