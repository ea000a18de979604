// A kernel with arguments in a loop. The lowering allocates the argument array on the stack in the
// loop's body: past about 32,000 iterations this overflows 8 MB, whatever the runtime does.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @take(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %count: index) kernel {
      gpu.return
    }
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    %count = arith.constant 16 : index
    %start = gpu.wait async
    %data, %allocated = gpu.alloc async [%start] (%count) : memref<?xf32>
    gpu.wait [%allocated]
    scf.for %i = %zero to %iterations step %one {
      gpu.launch_func @kernels::@take
          blocks in (%one, %one, %one) threads in (%one, %one, %one)
          args(%data : memref<?xf32>, %data : memref<?xf32>, %data : memref<?xf32>, %count : index)
    }
    return
  }
}
