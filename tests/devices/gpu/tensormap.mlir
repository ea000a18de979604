// A tile of a matrix, by the tensor memory accelerator: the host describes the matrix, one thread asks
// for the tile at row 32 and column 8, all wait for it and write it out. Prints the tile.
!tile = memref<16x8xf32, 3>
!map = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = none, l2promo = none, oob = zero, interleave = none>
!barrier = !nvgpu.mbarrier.group<memorySpace = 3>
module attributes {gpu.container_module} {
  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
  memref.global "private" @tile : memref<16x8xf32, 3> {alignment = 128 : i64}
  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rows = arith.constant 16 : index
    %columns = arith.constant 8 : index
    %threads = arith.constant 128 : index
    %height = arith.constant 64 : index
    %width = arith.constant 32 : index
    %bytes = arith.constant 512 : index
    %ticks = arith.constant 10000000 : index
    %parity = arith.constant false
    %h = memref.alloc() : memref<64x32xf32>
    %ho = memref.alloc() : memref<16x8xf32>
    scf.for %i = %zero to %height step %one {
      scf.for %j = %zero to %width step %one {
        %k = arith.muli %i, %width : index
        %l = arith.addi %k, %j : index
        %m = arith.index_cast %l : index to i32
        %f = arith.sitofp %m : i32 to f32
        memref.store %f, %h[%i, %j] : memref<64x32xf32>
      }
    }
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] () : memref<64x32xf32>
    %o, %t2 = gpu.alloc async [%t1] () : memref<16x8xf32>
    %t3 = gpu.memcpy async [%t2] %d, %h : memref<64x32xf32>, memref<64x32xf32>
    gpu.wait [%t3]
    %u = memref.cast %d : memref<64x32xf32> to memref<*xf32>
    %map = nvgpu.tma.create.descriptor %u box[%rows, %columns] : memref<*xf32> -> !map
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
      %tile = memref.get_global @tile : !tile
      %leader = arith.cmpi eq, %tx, %zero : index
      %barrier = nvgpu.mbarrier.create -> !barrier
      nvgpu.mbarrier.init %barrier[%zero], %one : !barrier
      gpu.barrier
      scf.if %leader {
        nvgpu.mbarrier.arrive.expect_tx %barrier[%zero], %bytes : !barrier
        %x = arith.constant 8 : index
        %y = arith.constant 32 : index
        nvgpu.tma.async.load %map[%x, %y], %barrier[%zero] to %tile : !map, !barrier -> !tile
      }
      nvgpu.mbarrier.try_wait.parity %barrier[%zero], %parity, %ticks : !barrier
      %row = arith.divui %tx, %columns : index
      %column = arith.remui %tx, %columns : index
      %value = memref.load %tile[%row, %column] : !tile
      memref.store %value, %o[%row, %column] : memref<16x8xf32>
      gpu.terminator
    }
    %v0 = gpu.wait async
    %v1 = gpu.memcpy async [%v0] %ho, %o : memref<16x8xf32>, memref<16x8xf32>
    %v2 = gpu.dealloc async [%v1] %d : memref<64x32xf32>
    %v3 = gpu.dealloc async [%v2] %o : memref<16x8xf32>
    gpu.wait [%v3]
    %uo = memref.cast %ho : memref<16x8xf32> to memref<*xf32>
    call @printMemrefF32(%uo) : (memref<*xf32>) -> ()
    memref.dealloc %h : memref<64x32xf32>
    memref.dealloc %ho : memref<16x8xf32>
    return
  }
}
