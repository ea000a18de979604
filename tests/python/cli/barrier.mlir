// Reverses 256 numbers by way of workgroup memory, four wavefronts wide.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @reverse(%numbers: memref<256xi32>)
        workgroup(%shared: memref<256xi32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %i = gpu.thread_id x
      %last = arith.constant 255 : index
      %other = arith.subi %last, %i : index
      %mine = arith.index_cast %i : index to i32
      memref.store %mine, %shared[%i] : memref<256xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %theirs = memref.load %shared[%other] : memref<256xi32, #gpu.address_space<workgroup>>
      memref.store %theirs, %numbers[%i] : memref<256xi32>
      gpu.return
    }
  }

  func.func @main() {
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %start = gpu.wait async
    %numbers, %allocated = gpu.alloc async [%start] () : memref<256xi32>
    %launched = gpu.launch_func async [%allocated] @kernels::@reverse
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%numbers : memref<256xi32>)
    %freed = gpu.dealloc async [%launched] %numbers : memref<256xi32>
    gpu.wait [%freed]
    return
  }
}
