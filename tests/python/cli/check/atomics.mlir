// Kernels with atomic accesses that the waves of a workgroup order by barriers.
#workgroup = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // The first work-items clear the bins, and write the sums.
    gpu.func @histogram(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%bins: memref<16xi32, #workgroup>) kernel {
      %one = arith.constant 1 : i32
      %nothing = arith.constant 0 : i32
      %count = arith.constant 16 : index
      %thread = gpu.thread_id x
      %i = gpu.global_id x
      %clears = arith.cmpi ult, %thread, %count : index
      scf.if %clears {
        memref.store %nothing, %bins[%thread] : memref<16xi32, #workgroup>
      }
      // fault: barrier taken out; race; addi %one, %bins[;
      gpu.barrier
      %x = memref.load %in[%i] : memref<?xi32>
      %number = arith.index_cast %x : i32 to index
      %bin = arith.remui %number, %count : index
      %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<16xi32, #workgroup>) -> i32
      // fault: barrier taken out; race; addi %one, %bins[;
      gpu.barrier
      scf.if %clears {
        %sum = memref.load %bins[%thread] : memref<16xi32, #workgroup>
        %all = memref.atomic_rmw addi %sum, %out[%thread] : (i32, memref<?xi32>) -> i32
      }
      gpu.return
    }
    // Each work-item takes a ticket, and stores its number there.
    gpu.func @tickets(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%next: memref<1xi32, #workgroup>) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %nothing = arith.constant 0 : i32
      %block = gpu.block_id x
      %wide = gpu.block_dim x
      %thread = gpu.thread_id x
      %i = gpu.global_id x
      %first = arith.cmpi eq, %thread, %zero : index
      scf.if %first {
        memref.store %nothing, %next[%zero] : memref<1xi32, #workgroup>
      }
      // fault: barrier taken out; race; addi %one, %next[;
      gpu.barrier
      %x = memref.load %in[%i] : memref<?xi32>
      %ticket = memref.atomic_rmw addi %one, %next[%zero] : (i32, memref<1xi32, #workgroup>) -> i32
      %at = arith.index_cast %ticket : i32 to index
      %begin = arith.muli %block, %wide : index
      %to = arith.addi %begin, %at : index
      memref.store %x, %out[%to] : memref<?xi32>
      gpu.return
    }
    // The workgroup's maximum begins with the first number, and every work-item reads it.
    gpu.func @maximum(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%most: memref<1xi32, #workgroup>) kernel {
      %zero = arith.constant 0 : index
      %thread = gpu.thread_id x
      %i = gpu.global_id x
      %first = arith.cmpi eq, %thread, %zero : index
      %x = memref.load %in[%i] : memref<?xi32>
      scf.if %first {
        memref.store %x, %most[%zero] : memref<1xi32, #workgroup>
      }
      // fault: barrier taken out; race; maxs %x, %most[;
      gpu.barrier
      %old = memref.atomic_rmw maxs %x, %most[%zero] : (i32, memref<1xi32, #workgroup>) -> i32
      // fault: barrier taken out; race; maxs %x, %most[;
      gpu.barrier
      %y = memref.load %most[%zero] : memref<1xi32, #workgroup>
      memref.store %y, %out[%i] : memref<?xi32>
      gpu.return
    }
    // A loop of compare-and-swaps.
    gpu.func @product(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%local: memref<1xi32, #workgroup>) kernel {
      %zero = arith.constant 0 : index
      %start = arith.constant 3 : i32
      %thread = gpu.thread_id x
      %i = gpu.global_id x
      %first = arith.cmpi eq, %thread, %zero : index
      scf.if %first {
        memref.store %start, %local[%zero] : memref<1xi32, #workgroup>
      }
      // fault: barrier taken out; race uninitialised; %local[;
      gpu.barrier
      %x = memref.load %in[%i] : memref<?xi32>
      %old = memref.generic_atomic_rmw %local[%zero] : memref<1xi32, #workgroup> {
      ^bb0(%now: i32):
        %new = arith.muli %now, %x : i32
        memref.atomic_yield %new : i32
      }
      gpu.barrier
      %y = memref.load %local[%zero] : memref<1xi32, #workgroup>
      memref.store %y, %out[%i] : memref<?xi32>
      gpu.return
    }
    // Each workgroup clears its own sum in global memory.
    gpu.func @sums(%in: memref<?xi32>, %out: memref<?xi32>) kernel {
      %zero = arith.constant 0 : index
      %nothing = arith.constant 0 : i32
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %i = gpu.global_id x
      %first = arith.cmpi eq, %thread, %zero : index
      scf.if %first {
        memref.store %nothing, %out[%block] : memref<?xi32>
      }
      // fault: barrier taken out; race; addi %x, %out[;
      gpu.barrier
      %x = memref.load %in[%i] : memref<?xi32>
      %old = memref.atomic_rmw addi %x, %out[%block] : (i32, memref<?xi32>) -> i32
      gpu.return
    }
    // The even numbers, without gaps: a workgroup reserves as many places as it needs.
    gpu.func @evens(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%places: memref<2xi32, #workgroup>) kernel {
      %zero = arith.constant 0 : index
      %base = arith.constant 1 : index
      %end = arith.constant 255 : index
      %one = arith.constant 1 : i32
      %nothing = arith.constant 0 : i32
      %thread = gpu.thread_id x
      %i = gpu.global_id x
      %first = arith.cmpi eq, %thread, %zero : index
      scf.if %first {
        memref.store %nothing, %places[%zero] : memref<2xi32, #workgroup>
      }
      // fault: barrier taken out; race; addi %one, %places[;
      gpu.barrier
      %x = memref.load %in[%i] : memref<?xi32>
      %bit = arith.andi %x, %one : i32
      %even = arith.cmpi eq, %bit, %nothing : i32
      %mine = scf.if %even -> i32 {
        %own = memref.atomic_rmw addi %one, %places[%zero] : (i32, memref<2xi32, #workgroup>) -> i32
        scf.yield %own : i32
      } else {
        scf.yield %nothing : i32
      }
      // fault: barrier taken out; race; addi %one, %places[;
      gpu.barrier
      scf.if %first {
        %count = memref.load %places[%zero] : memref<2xi32, #workgroup>
        %begin = memref.atomic_rmw addi %count, %out[%end] : (i32, memref<?xi32>) -> i32
        memref.store %begin, %places[%base] : memref<2xi32, #workgroup>
      }
      // fault: barrier taken out; race; %begin, %places[;
      gpu.barrier
      scf.if %even {
        %begin = memref.load %places[%base] : memref<2xi32, #workgroup>
        %place = arith.addi %begin, %mine : i32
        %to = arith.index_cast %place : i32 to index
        memref.store %x, %out[%to] : memref<?xi32>
      }
      gpu.return
    }
  }

  func.func @run(%in: memref<?xi32>, %out: memref<?xi32>) {
    %two = arith.constant 2 : index
    %one = arith.constant 1 : index
    %wide = arith.constant 128 : index
    %nothing = arith.constant 0 : i32
    %t0 = gpu.wait async
    %t1 = gpu.memset async [%t0] %out, %nothing : memref<?xi32>, i32
    %k1 = gpu.launch_func async [%t1] @kernels::@histogram
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xi32>, %out : memref<?xi32>)
    %k2 = gpu.launch_func async [%k1] @kernels::@tickets
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xi32>, %out : memref<?xi32>)
    %k3 = gpu.launch_func async [%k2] @kernels::@maximum
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xi32>, %out : memref<?xi32>)
    %k4 = gpu.launch_func async [%k3] @kernels::@product
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xi32>, %out : memref<?xi32>)
    %k5 = gpu.launch_func async [%k4] @kernels::@sums
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xi32>, %out : memref<?xi32>)
    %t2 = gpu.memset async [%k5] %out, %nothing : memref<?xi32>, i32
    %k6 = gpu.launch_func async [%t2] @kernels::@evens
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%in : memref<?xi32>, %out : memref<?xi32>)
    gpu.wait [%k6]
    return
  }

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = arith.constant 256 : index
    %status = arith.constant 0 : i32
    %host = memref.alloc(%count) : memref<?xi32>
    scf.for %i = %zero to %count step %one {
      %x = arith.index_cast %i : index to i32
      memref.store %x, %host[%i] : memref<?xi32>
    }
    %t0 = gpu.wait async
    %in, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %out, %t2 = gpu.alloc async [%t1] (%count) : memref<?xi32>
    %t3 = gpu.memcpy async [%t2] %in, %host : memref<?xi32>, memref<?xi32>
    gpu.wait [%t3]
    func.call @run(%in, %out) : (memref<?xi32>, memref<?xi32>) -> ()
    %t4 = gpu.wait async
    %t5 = gpu.dealloc async [%t4] %in : memref<?xi32>
    %t6 = gpu.dealloc async [%t5] %out : memref<?xi32>
    gpu.wait [%t6]
    memref.dealloc %host : memref<?xi32>
    return %status : i32
  }
}
