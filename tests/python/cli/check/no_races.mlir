// Accesses of several waves to the same bytes that are no fault: ordered, atomic, or of one value.
#workgroup = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @barriers(%out: memref<?xi32>)
        workgroup(%tile: memref<128xi32, #workgroup>) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %rounds = arith.constant 4 : index
      %last = arith.constant 127 : index
      %thread = gpu.thread_id x
      %other = arith.subi %last, %thread : index
      scf.for %round = %zero to %rounds step %one {
        %x = memref.load %out[%thread] : memref<?xi32>
        memref.store %x, %tile[%thread] : memref<128xi32, #workgroup>
        // fault: barrier taken out; race; %tile[;
        gpu.barrier
        %y = memref.load %tile[%other] : memref<128xi32, #workgroup>
        memref.store %y, %out[%other] : memref<?xi32>
        // fault: barrier taken out (2 lines); race; %tile[; }
        gpu.barrier
      }
      gpu.return
    }
    gpu.func @histogram(%out: memref<?xi32>)
        workgroup(%bins: memref<16xi32, #workgroup>) kernel {
      %one = arith.constant 1 : i32
      %count = arith.constant 16 : index
      %thread = gpu.thread_id x
      %bin = arith.remui %thread, %count : index
      %nothing = arith.constant 0 : i32
      memref.store %nothing, %bins[%bin] : memref<16xi32, #workgroup>
      // fault: barrier taken out; race; %bins[;
      gpu.barrier
      %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<16xi32, #workgroup>) -> i32
      // fault: barrier taken out; race; %bins[;
      gpu.barrier
      %sum = memref.load %bins[%bin] : memref<16xi32, #workgroup>
      // fault: atomic access made plain; race; %out[%bin]; %v = arith.index_cast %thread : index to i32 \n memref.store %v, %out[%bin] : memref<?xi32>
      %all = memref.atomic_rmw addi %sum, %out[%bin] : (i32, memref<?xi32>) -> i32
      gpu.return
    }
    // A loop that compares and swaps begins with a plain load.
    gpu.func @product(%out: memref<?xi32>) kernel {
      %zero = arith.constant 0 : index
      %three = arith.constant 3 : i32
      %x = memref.generic_atomic_rmw %out[%zero] : memref<?xi32> {
      ^bb0(%old: i32):
        %new = arith.muli %old, %three : i32
        memref.atomic_yield %new : i32
      }
      gpu.return
    }
    gpu.func @one_value(%out: memref<?xi32>)
        workgroup(%shared: memref<2xi32, #workgroup>) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %x = arith.constant 5 : i32
      %y = arith.constant 6 : i32
      memref.store %x, %shared[%zero] : memref<2xi32, #workgroup>
      // fault: index shifted; race; %shared[%one]; %t = gpu.thread_id x \n %v = arith.index_cast %t : index to i32 \n memref.store %v, %shared[%one] : memref<2xi32, #workgroup>
      memref.store %y, %shared[%one] : memref<2xi32, #workgroup>
      // fault: index shifted; race; %out[%zero]; %i = gpu.global_id x \n %z = arith.index_cast %i : index to i32 \n memref.store %z, %out[%zero] : memref<?xi32>
      memref.store %x, %out[%zero] : memref<?xi32>
      gpu.barrier
      %thread = gpu.thread_id x
      %which = arith.minui %thread, %one : index
      %w = memref.load %shared[%which] : memref<2xi32, #workgroup>
      memref.store %w, %out[%which] : memref<?xi32>
      gpu.return
    }
    gpu.func @own_bytes(%out: memref<?xi8>) kernel {
      %four = arith.constant 64 : index
      %pair = arith.constant 4 : index
      %i = gpu.global_id x
      %wave = arith.divui %i, %four : index
      %lane = arith.remui %i, %four : index
      // fault: index shifted; race; %out[%at]; %dword = arith.addi %lane, %lane : index
      %dword = arith.muli %lane, %pair : index
      %at = arith.addi %dword, %wave : index
      %x = memref.load %out[%at] : memref<?xi8>
      %more = arith.constant 1 : i8
      %y = arith.addi %x, %more : i8
      memref.store %y, %out[%at] : memref<?xi8>
      gpu.return
    }
    // The first workgroup publishes data by a flag, for which the second one waits.
    gpu.func @flag(%data: memref<?xi32>, %flag: !llvm.ptr<1>) kernel {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %first = arith.constant 0 : index
      %here = arith.constant 1 : index
      %value = arith.constant 7 : i32
      %block = gpu.block_id x
      %writes = arith.cmpi eq, %block, %first : index
      scf.if %writes {
        memref.store %value, %data[%first] : memref<?xi32>
        llvm.store %one, %flag atomic syncscope("agent") release {alignment = 4} : i32, !llvm.ptr<1>
      } else {
        %done = scf.while (%seen = %zero) : (i32) -> i32 {
          %waits = arith.cmpi eq, %seen, %zero : i32
          scf.condition(%waits) %seen : i32
        } do {
        ^bb0(%seen: i32):
          %new = llvm.load %flag atomic syncscope("agent") monotonic {alignment = 4}
              : !llvm.ptr<1> -> i32
          scf.yield %new : i32
        }
        // fault: scope narrowed (2 lines); race; %data[%first]; %x = memref.load %data[%first] : memref<?xi32>
        // fault: scope narrowed; race; %data[; llvm.fence syncscope("workgroup") acquire
        llvm.fence syncscope("agent") acquire
        %x = memref.load %data[%first] : memref<?xi32>
        memref.store %x, %data[%here] : memref<?xi32>
      }
      gpu.return
    }
    // The workgroup that comes last adds what the others have written.
    gpu.func @last_adds(%data: memref<?xi32>, %count: !llvm.ptr<1>) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %more = arith.constant 1 : i32
      %end = arith.constant 255 : i32
      %all = arith.constant 256 : index
      %nothing = arith.constant 0 : i32
      %i = gpu.global_id x
      memref.store %more, %data[%i] : memref<?xi32>
      // fault: scope narrowed; race; %data[; %before = llvm.atomicrmw add %count, %more syncscope("agent") release : !llvm.ptr<1>, i32
      // fault: scope narrowed; race; %data[; %before = llvm.atomicrmw add %count, %more syncscope("workgroup") acq_rel : !llvm.ptr<1>, i32
      %before = llvm.atomicrmw add %count, %more syncscope("agent") acq_rel : !llvm.ptr<1>, i32
      %last = arith.cmpi eq, %before, %end : i32
      scf.if %last {
        %sum = scf.for %n = %zero to %all step %one iter_args(%part = %nothing) -> i32 {
          %x = memref.load %data[%n] : memref<?xi32>
          %next = arith.addi %part, %x : i32
          scf.yield %next : i32
        }
        memref.store %sum, %data[%zero] : memref<?xi32>
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
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] (%count) : memref<?xi32>
    %t2 = gpu.memset async [%t1] %out, %nothing : memref<?xi32>, i32
    %bytes, %t3 = gpu.alloc async [%t2] (%count) : memref<?xi8>
    %flags, %t4 = gpu.alloc async [%t3] (%count) : memref<?xi32>
    %t5 = gpu.memset async [%t4] %flags, %nothing : memref<?xi32>, i32
    %at = memref.extract_aligned_pointer_as_index %flags : memref<?xi32> -> index
    %address = arith.index_cast %at : index to i64
    %four = arith.constant 4 : i64
    %next = arith.addi %address, %four : i64
    %flag = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %counter = llvm.inttoptr %next : i64 to !llvm.ptr<1>
    %k1 = gpu.launch_func async [%t5] @kernels::@barriers
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k2 = gpu.launch_func async [%k1] @kernels::@histogram
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k3 = gpu.launch_func async [%k2] @kernels::@product
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k4 = gpu.launch_func async [%k3] @kernels::@one_value
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xi32>)
    %k5 = gpu.launch_func async [%k4] @kernels::@own_bytes
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%bytes : memref<?xi8>)
    %k6 = gpu.launch_func async [%k5] @kernels::@flag
        blocks in (%two, %one, %one) threads in (%one, %one, %one)
        args(%out : memref<?xi32>, %flag : !llvm.ptr<1>)
    %k7 = gpu.launch_func async [%k6] @kernels::@last_adds
        blocks in (%two, %one, %one) threads in (%wide, %one, %one)
        args(%out : memref<?xi32>, %counter : !llvm.ptr<1>)
    %t6 = gpu.dealloc async [%k7] %out : memref<?xi32>
    %t7 = gpu.dealloc async [%t6] %bytes : memref<?xi8>
    %t8 = gpu.dealloc async [%t7] %flags : memref<?xi32>
    gpu.wait [%t8]
    return %status : i32
  }
}
