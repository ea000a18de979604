// One race a kernel, in the order of the table in test_races.py. A group has two waves.
#workgroup = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @no_barrier(%out: memref<?xi32>)
        workgroup(%tile: memref<128xi32, #workgroup>) kernel {
      %thread = gpu.thread_id x
      %last = arith.constant 127 : index
      %other = arith.subi %last, %thread : index
      %x = memref.load %out[%thread] : memref<?xi32>
      memref.store %x, %tile[%other] : memref<128xi32, #workgroup>
      %y = memref.load %tile[%thread] : memref<128xi32, #workgroup>
      memref.store %y, %out[%thread] : memref<?xi32>
      gpu.return
    }
    gpu.func @barrier_too_few(%out: memref<?xi32>)
        workgroup(%tile: memref<128xi32, #workgroup>) kernel {
      %thread = gpu.thread_id x
      %last = arith.constant 127 : index
      %other = arith.subi %last, %thread : index
      %x = memref.load %out[%thread] : memref<?xi32>
      memref.store %x, %tile[%thread] : memref<128xi32, #workgroup>
      gpu.barrier
      %y = memref.load %tile[%other] : memref<128xi32, #workgroup>
      %z = arith.addi %x, %y : i32
      memref.store %z, %tile[%thread] : memref<128xi32, #workgroup>
      gpu.return
    }
    gpu.func @histogram(%out: memref<?xi32>)
        workgroup(%bins: memref<16xi32, #workgroup>) kernel {
      %one = arith.constant 1 : i32
      %count = arith.constant 16 : index
      %thread = gpu.thread_id x
      %bin = arith.remui %thread, %count : index
      %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<16xi32, #workgroup>) -> i32
      %sum = memref.load %bins[%bin] : memref<16xi32, #workgroup>
      memref.store %sum, %out[%thread] : memref<?xi32>
      gpu.return
    }
    gpu.func @same_element(%out: memref<?xi32>) kernel {
      %zero = arith.constant 0 : index
      %i = gpu.global_id x
      %x = arith.index_cast %i : index to i32
      memref.store %x, %out[%zero] : memref<?xi32>
      gpu.return
    }
    gpu.func @sum_without_atomics(%out: memref<?xi32>) kernel {
      %one = arith.constant 1 : i32
      %thread = gpu.thread_id x
      %x = memref.load %out[%thread] : memref<?xi32>
      %sum = arith.addi %x, %one : i32
      memref.store %sum, %out[%thread] : memref<?xi32>
      gpu.return
    }
    gpu.func @neighbour(%out: memref<?xi32>) kernel {
      %one = arith.constant 1 : index
      %end = arith.constant 255 : index
      %i = gpu.global_id x
      %up = arith.addi %i, %one : index
      %next = arith.minui %up, %end : index
      %x = memref.load %out[%next] : memref<?xi32>
      memref.store %x, %out[%i] : memref<?xi32>
      gpu.return
    }
    gpu.func @overlapping_bytes(%out: memref<?xi8>) kernel {
      %i = gpu.global_id x
      %half = arith.constant 127 : index
      %at = arith.minui %i, %half : index
      %x = arith.index_cast %i : index to i8
      memref.store %x, %out[%at] : memref<?xi8>
      gpu.return
    }
    // The flag is read without an acquire: the scope is the workgroup's.
    gpu.func @scope_too_small(%data: memref<?xi32>, %flag: !llvm.ptr<1>) kernel {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %first = arith.constant 0 : index
      %here = arith.constant 1 : index
      %value = arith.constant 7 : i32
      %block = gpu.block_id x
      %writes = arith.cmpi eq, %block, %first : index
      scf.if %writes {
        memref.store %value, %data[%first] : memref<?xi32>
        %o = llvm.atomicrmw xchg %flag, %one syncscope("agent") release : !llvm.ptr<1>, i32
      } else {
        %done = scf.while (%seen = %zero) : (i32) -> i32 {
          %waits = arith.cmpi eq, %seen, %zero : i32
          scf.condition(%waits) %seen : i32
        } do {
        ^bb0(%seen: i32):
          %new = llvm.atomicrmw _or %flag, %zero syncscope("workgroup") acquire : !llvm.ptr<1>, i32
          scf.yield %new : i32
        }
        %x = memref.load %data[%first] : memref<?xi32>
        memref.store %x, %data[%here] : memref<?xi32>
      }
      gpu.return
    }
  }

  func.func @main() -> i32 {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %wide = arith.constant 128 : index
    %count = arith.constant 256 : index
    %nothing = arith.constant 0 : i32
    %status = arith.constant 0 : i32
    %zero = arith.constant 0 : index
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %t2 = gpu.memset async [%t1] %out, %nothing : memref<?xi32>, i32
    %bytes, %t3 = gpu.alloc async [%t2] (%count) : memref<?xi8>
    %flags, %t4 = gpu.alloc async [%t3] (%count) : memref<?xi32>
    %t5 = gpu.memset async [%t4] %flags, %nothing : memref<?xi32>, i32
    %at = memref.extract_aligned_pointer_as_index %flags : memref<?xi32> -> index
    %address = arith.index_cast %at : index to i64
    %flag = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %k1 = gpu.launch_func async [%t5] @kernels::@no_barrier
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k2 = gpu.launch_func async [%k1] @kernels::@barrier_too_few
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k3 = gpu.launch_func async [%k2] @kernels::@histogram
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k4 = gpu.launch_func async [%k3] @kernels::@same_element
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k5 = gpu.launch_func async [%k4] @kernels::@sum_without_atomics
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k6 = gpu.launch_func async [%k5] @kernels::@neighbour
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k7 = gpu.launch_func async [%k6] @kernels::@overlapping_bytes
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%bytes : memref<?xi8>)
    %k8 = gpu.launch_func async [%k7] @kernels::@scope_too_small
        blocks in (%two, %one, %one) threads in (%one, %one, %one)
        args(%out : memref<?xi32>, %flag : !llvm.ptr<1>)
    %t6 = gpu.dealloc async [%k8] %out : memref<?xi32>
    %t7 = gpu.dealloc async [%t6] %bytes : memref<?xi8>
    %t8 = gpu.dealloc async [%t7] %flags : memref<?xi32>
    gpu.wait [%t8]
    return %status : i32
  }
}
