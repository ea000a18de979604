// Kernels without host code: they were timed for softgpu/REFERENCE.md, and the tests decode them.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" @tile_a : memref<16x16xf32, #gpu.address_space<workgroup>>
    memref.global "private" @tile_b : memref<16x16xf32, #gpu.address_space<workgroup>>

    // c = a + b.
    gpu.func @vecadd(%a: memref<65536xf32>, %b: memref<65536xf32>, %c: memref<65536xf32>) kernel {
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %x = memref.load %a[%i] : memref<65536xf32>
      %y = memref.load %b[%i] : memref<65536xf32>
      %sum = arith.addf %x, %y : f32
      memref.store %sum, %c[%i] : memref<65536xf32>
      gpu.return
    }

    // c = a b, each workgroup of 16 x 16 work-items one tile, by way of workgroup memory.
    gpu.func @matmul(%a: memref<256x256xf32>, %b: memref<256x256xf32>, %c: memref<256x256xf32>)
        kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %tile = arith.constant 16 : index
      %size = arith.constant 256 : index
      %nothing = arith.constant 0.0 : f32
      %ta = memref.get_global @tile_a : memref<16x16xf32, #gpu.address_space<workgroup>>
      %tb = memref.get_global @tile_b : memref<16x16xf32, #gpu.address_space<workgroup>>
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %row0 = arith.muli %by, %tile : index
      %row = arith.addi %row0, %ty : index
      %column0 = arith.muli %bx, %tile : index
      %column = arith.addi %column0, %tx : index
      %sum = scf.for %k = %zero to %size step %tile iter_args(%acc = %nothing) -> (f32) {
        %ka = arith.addi %k, %tx : index
        %kb = arith.addi %k, %ty : index
        %x = memref.load %a[%row, %ka] : memref<256x256xf32>
        %y = memref.load %b[%kb, %column] : memref<256x256xf32>
        memref.store %x, %ta[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        memref.store %y, %tb[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        %part = scf.for %n = %zero to %tile step %one iter_args(%inner = %acc) -> (f32) {
          %p = memref.load %ta[%ty, %n] : memref<16x16xf32, #gpu.address_space<workgroup>>
          %q = memref.load %tb[%n, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
          %r = math.fma %p, %q, %inner : f32
          scf.yield %r : f32
        }
        gpu.barrier
        scf.yield %part : f32
      }
      memref.store %sum, %c[%row, %column] : memref<256x256xf32>
      gpu.return
    }

    // A loop of arithmetic without memory: floats, integers, a compare and a select.
    gpu.func @arithmetic(%out: memref<65536xf32>, %steps: i32) kernel {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %shift = arith.constant 7 : i32
      %odd = arith.constant 1664525 : i32
      %half = arith.constant 0.5 : f32
      %scale = arith.constant 0.999 : f32
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %width : index
      %i = arith.addi %first, %thread : index
      %seed = arith.index_cast %i : index to i32
      %start = arith.sitofp %seed : i32 to f32
      %r, %x = scf.for %n = %zero to %steps step %one iter_args(%s = %seed, %y = %start)
          -> (i32, f32) : i32 {
        %s1 = arith.muli %s, %odd : i32
        %s2 = arith.shrui %s1, %shift : i32
        %s3 = arith.xori %s1, %s2 : i32
        %s4 = arith.addi %s3, %n : i32
        %y1 = math.fma %y, %scale, %half : f32
        %y2 = arith.mulf %y1, %scale : f32
        %y3 = arith.addf %y2, %half : f32
        %less = arith.cmpi slt, %s4, %zero : i32
        %y4 = arith.subf %y3, %half : f32
        %y5 = arith.select %less, %y4, %y3 : f32
        scf.yield %s4, %y5 : i32, f32
      }
      %t = arith.sitofp %r : i32 to f32
      %sum = arith.addf %t, %x : f32
      memref.store %sum, %out[%i] : memref<65536xf32>
      gpu.return
    }
  }
}
