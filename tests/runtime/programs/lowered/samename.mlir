// Two modules with a kernel of the same name that do different things: one writes 1, the other 2.
// Prints 12 when both were found; 10 or 2 when one was taken for the other. What a kernel writes is a
// constant with a name in its image, so that a stand-in for the device can read it there.
module attributes {gpu.container_module} {
  gpu.module @first {
    llvm.mlir.global internal constant @value(1 : i32) {addr_space = 4 : i32} : i32

    gpu.func @mark(%out: memref<2xi32>) kernel {
      %at = arith.constant 0 : index
      %address = llvm.mlir.addressof @value : !llvm.ptr<4>
      %value = llvm.load volatile %address : !llvm.ptr<4> -> i32
      memref.store %value, %out[%at] : memref<2xi32>
      gpu.return
    }
  }

  gpu.module @second {
    llvm.mlir.global internal constant @value(2 : i32) {addr_space = 4 : i32} : i32

    gpu.func @mark(%out: memref<2xi32>) kernel {
      %at = arith.constant 1 : index
      %address = llvm.mlir.addressof @value : !llvm.ptr<4>
      %value = llvm.load volatile %address : !llvm.ptr<4> -> i32
      memref.store %value, %out[%at] : memref<2xi32>
      gpu.return
    }
  }

  func.func private @printI64(i64)
  func.func private @printNewline()

  func.func @step(%out: memref<2xi32>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    gpu.launch_func @first::@mark
        blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%out : memref<2xi32>)
    gpu.launch_func @second::@mark
        blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%out : memref<2xi32>)
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    %ten = arith.constant 10 : i64
    %nothing = arith.constant 0 : i32
    %host = memref.alloc() : memref<2xi32>
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] () : memref<2xi32>
    %t2 = gpu.memset async [%t1] %out, %nothing : memref<2xi32>, i32
    gpu.wait [%t2]
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%out) : (memref<2xi32>) -> ()
    }
    %u0 = gpu.wait async
    %u1 = gpu.memcpy async [%u0] %host, %out : memref<2xi32>, memref<2xi32>
    %u2 = gpu.dealloc async [%u1] %out : memref<2xi32>
    gpu.wait [%u2]
    %a = memref.load %host[%zero] : memref<2xi32>
    %b = memref.load %host[%one] : memref<2xi32>
    %wide_a = arith.extsi %a : i32 to i64
    %wide_b = arith.extsi %b : i32 to i64
    %tens = arith.muli %wide_a, %ten : i64
    %both = arith.addi %tens, %wide_b : i64
    func.call @printI64(%both) : (i64) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<2xi32>
    return
  }
}
