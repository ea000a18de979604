// One fault of each kind: a kernel or a call each, in the order of the table in test_check.py. A
// wrong access is left out, so the program goes on to the next fault.
#private = #gpu.address_space<private>
#workgroup = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @index_shifted(%out: memref<?xf32>) kernel {
      %one = arith.constant 1 : index
      %x = arith.constant 1.0 : f32
      %i = gpu.global_id x
      %next = arith.addi %i, %one : index
      memref.store %x, %out[%next] : memref<?xf32>
      gpu.return
    }
    gpu.func @begins_before(%out: memref<?xf32>) kernel {
      %one = arith.constant 1 : index
      %i = gpu.global_id x
      %before = arith.subi %i, %one : index
      %x = memref.load %out[%before] : memref<?xf32>
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @far_beyond(%out: memref<?xf32>) kernel {
      %far = arith.constant 100000 : index
      %i = gpu.global_id x
      %other = arith.addi %i, %far : index
      %x = memref.load %out[%other] : memref<?xf32>
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @size_cut(%out: memref<?xf32>) kernel {
      %x = arith.constant 1.0 : f32
      %i = gpu.global_id x
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @atomic_beyond(%out: memref<?xf32>, %at: index) kernel {
      %x = arith.constant 1.0 : f32
      %old = memref.atomic_rmw addf %x, %out[%at] : (f32, memref<?xf32>) -> f32
      gpu.return
    }
    gpu.func @scalar_beyond(%out: memref<?xf32>, %in: memref<?xf32>, %at: index) kernel {
      %x = memref.load %in[%at] : memref<?xf32>
      %i = gpu.global_id x
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @group_beyond(%out: memref<?xf32>)
        workgroup(%tile: memref<64xf32, #workgroup>) kernel {
      %one = arith.constant 1 : index
      %thread = gpu.thread_id x
      %next = arith.addi %thread, %one : index
      %x = memref.load %out[%thread] : memref<?xf32>
      memref.store %x, %tile[%next] : memref<64xf32, #workgroup>
      gpu.barrier
      %y = memref.load %tile[%thread] : memref<64xf32, #workgroup>
      memref.store %y, %out[%thread] : memref<?xf32>
      gpu.return
    }
    gpu.func @scratch_beyond(%out: memref<?xf32>, %at: index)
        private(%own: memref<1024xf32, #private>) kernel {
      %zero = arith.constant 0 : index
      %i = gpu.global_id x
      %x = memref.load %out[%i] : memref<?xf32>
      memref.store %x, %own[%at] : memref<1024xf32, #private>
      gpu.barrier
      %y = memref.load %own[%zero] : memref<1024xf32, #private>
      memref.store %y, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @code_written() kernel {
      %x = arith.constant 0 : i32
      %pc = llvm.inline_asm has_side_effects "s_getpc_b64 $0", "=s" : () -> i64
      %code = llvm.inttoptr %pc : i64 to !llvm.ptr<1>
      llvm.store %x, %code : i32, !llvm.ptr<1>
      gpu.return
    }
    gpu.func @registered_beyond(%out: memref<?xf32>) kernel {
      %one = arith.constant 1 : index
      %x = arith.constant 1.0 : f32
      %i = gpu.global_id x
      %next = arith.addi %i, %one : index
      memref.store %x, %out[%next] : memref<?xf32>
      gpu.return
    }
    gpu.func @after_unregister(%out: memref<?xf32>) kernel {
      %x = arith.constant 1.0 : f32
      %i = gpu.global_id x
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @after_free(%out: memref<?xf32>) kernel {
      %x = arith.constant 1.0 : f32
      %i = gpu.global_id x
      memref.store %x, %out[%i] : memref<?xf32>
      gpu.return
    }
  }

  func.func private @mgpuMemGetDeviceMemRef1dFloat(memref<?xf32>) -> memref<?xf32>

  func.func @main() -> i32 {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %wide = arith.constant 64 : index
    %few = arith.constant 120 : index
    %count = arith.constant 128 : index
    %far = arith.constant 100000 : index
    %nothing = arith.constant 0.0 : f32
    %status = arith.constant 0 : i32
    %host = memref.alloc(%count) : memref<?xf32>
    %t0 = gpu.wait async
    %out, %t1 = gpu.alloc async [%t0] (%count) : memref<?xf32>
    %small, %t2 = gpu.alloc async [%t1] (%few) : memref<?xf32>
    %t3 = gpu.memset async [%t2] %out, %nothing : memref<?xf32>, f32
    %t4 = gpu.launch_func async [%t3] @kernels::@index_shifted
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xf32>)
    %t5 = gpu.launch_func async [%t4] @kernels::@begins_before
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xf32>)
    %t6 = gpu.launch_func async [%t5] @kernels::@far_beyond
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xf32>)
    %t7 = gpu.launch_func async [%t6] @kernels::@size_cut
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%small : memref<?xf32>)
    %t8 = gpu.launch_func async [%t7] @kernels::@atomic_beyond
        blocks in (%one, %one, %one) threads in (%one, %one, %one)
        args(%out : memref<?xf32>, %count : index)
    %t9 = gpu.launch_func async [%t8] @kernels::@scalar_beyond
        blocks in (%one, %one, %one) threads in (%wide, %one, %one)
        args(%out : memref<?xf32>, %small : memref<?xf32>, %few : index)
    %t10 = gpu.launch_func async [%t9] @kernels::@group_beyond
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xf32>)
    %t11 = gpu.launch_func async [%t10] @kernels::@scratch_beyond
        blocks in (%one, %one, %one) threads in (%wide, %one, %one)
        args(%out : memref<?xf32>, %far : index)
    %t12 = gpu.launch_func async [%t11] @kernels::@code_written
        blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.wait [%t12]
    %t13 = gpu.wait async
    // Copies and fills that are too long.
    %t14 = gpu.memcpy async [%t13] %small, %host : memref<?xf32>, memref<?xf32>
    %longer = memref.reinterpret_cast %small to offset: [0], sizes: [%count], strides: [1]
        : memref<?xf32> to memref<?xf32>
    %t15 = gpu.memset async [%t14] %longer, %nothing : memref<?xf32>, f32
    %t16 = gpu.memcpy async [%t15] %host, %longer : memref<?xf32>, memref<?xf32>
    // Memory that was freed.
    %t17 = gpu.dealloc async [%t16] %out : memref<?xf32>
    %t18 = gpu.launch_func async [%t17] @kernels::@after_free
        blocks in (%one, %one, %one) threads in (%wide, %one, %one) args(%out : memref<?xf32>)
    %t19 = gpu.memcpy async [%t18] %host, %out : memref<?xf32>, memref<?xf32>
    %t20 = gpu.dealloc async [%t19] %out : memref<?xf32>
    // Memory of the host.
    %unranked = memref.cast %host : memref<?xf32> to memref<*xf32>
    gpu.host_register %unranked : memref<*xf32>
    %seen = func.call @mgpuMemGetDeviceMemRef1dFloat(%host) : (memref<?xf32>) -> memref<?xf32>
    %r1 = gpu.launch_func async [%t20] @kernels::@registered_beyond
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%seen : memref<?xf32>)
    gpu.wait [%r1]
    gpu.host_unregister %unranked : memref<*xf32>
    %r2 = gpu.wait async
    %r3 = gpu.launch_func async [%r2] @kernels::@after_unregister
        blocks in (%two, %one, %one) threads in (%wide, %one, %one) args(%seen : memref<?xf32>)
    %t21 = gpu.dealloc async [%r3] %small : memref<?xf32>
    gpu.wait [%t21]
    memref.dealloc %host : memref<?xf32>
    return %status : i32
  }
}
