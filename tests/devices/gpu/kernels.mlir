// Kernels for the tests on NVIDIA's GPU.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // out[i] = 3 * i, by way of the last of 25,600 numbers in dynamic workgroup memory: 100 KB.
    gpu.func @through_workgroup_memory(%out: memref<?xi32>) kernel {
      %zero = arith.constant 0 : index
      %three = arith.constant 3 : i32
      %first = arith.constant 25344 : index
      %last = arith.constant 255 : index
      %i = gpu.thread_id x
      %number = arith.index_cast %i : index to i32
      %value = arith.muli %number, %three : i32
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %numbers = memref.view %bytes[%zero][]
          : memref<?xi8, #gpu.address_space<workgroup>> to memref<25600xi32, #gpu.address_space<workgroup>>
      %mine = arith.addi %first, %i : index
      memref.store %value, %numbers[%mine] : memref<25600xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %mirrored = arith.subi %last, %i : index
      %other = arith.addi %first, %mirrored : index
      %theirs = memref.load %numbers[%other] : memref<25600xi32, #gpu.address_space<workgroup>>
      memref.store %theirs, %out[%mirrored] : memref<?xi32>
      gpu.return
    }

    // out[workgroup] = the size of its cluster.
    gpu.func @cluster_size(%out: memref<?xi32>) kernel {
      %i = gpu.block_id x
      %size = gpu.cluster_dim_blocks x
      %number = arith.index_cast %size : index to i32
      memref.store %number, %out[%i] : memref<?xi32>
      gpu.return
    }

    // Sets flags[mine], then waits until flags[other] is set.
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
