// A kernel that counts its launches in a writable global of the device image. A module that is
// loaded anew starts from zero: LLVM 20 and older load at each launch, so the count printed is 1;
// later ones load once, so it is the number of iterations. No cache may change that.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @launches(0 : i32) {addr_space = 1 : i32} : i32

    gpu.func @count(%out: memref<1xi32>) kernel {
      %address = llvm.mlir.addressof @launches : !llvm.ptr<1>
      %old = llvm.load %address : !llvm.ptr<1> -> i32
      %one = arith.constant 1 : i32
      %new = arith.addi %old, %one : i32
      llvm.store %new, %address : i32, !llvm.ptr<1>
      %zero = arith.constant 0 : index
      memref.store %new, %out[%zero] : memref<1xi32>
      gpu.return
    }
  }

  func.func private @printI64(i64)
  func.func private @printNewline()

  func.func @step(%out: memref<1xi32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    gpu.launch_func @kernels::@count
        blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%out : memref<1xi32>)
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    %host = memref.alloc() : memref<1xi32>
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] () : memref<1xi32>
    gpu.wait [%t1]
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%out) : (memref<1xi32>) -> ()
    }
    %u0 = gpu.wait async
    %u1 = gpu.memcpy async [%u0] %host, %out : memref<1xi32>, memref<1xi32>
    %u2 = gpu.dealloc async [%u1] %out : memref<1xi32>
    gpu.wait [%u2]
    %count = memref.load %host[%zero] : memref<1xi32>
    %wide = arith.extsi %count : i32 to i64
    func.call @printI64(%wide) : (i64) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<1xi32>
    return
  }
}
