// Multiplies two matrices on the GPU, with ordinary MLIR: gpu.launch, gpu.alloc, gpu.memcpy, no
// tokens. Prints 16 rows of 64 times the row's number: A[i, k] = i, B[k, j] = 1, C = A B.
//
//     mgpu-rt run matmul.mlir
func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32

  %a = memref.alloc() : memref<16x64xf32>
  %b = memref.alloc() : memref<64x16xf32>
  %c = memref.alloc() : memref<16x16xf32>
  scf.for %i = %c0 to %c16 step %c1 {
    %number = arith.index_cast %i : index to i32
    %row = arith.sitofp %number : i32 to f32
    scf.for %k = %c0 to %c64 step %c1 {
      memref.store %row, %a[%i, %k] : memref<16x64xf32>
      memref.store %one, %b[%k, %i] : memref<64x16xf32>
    }
  }

  %da = gpu.alloc () : memref<16x64xf32>
  %db = gpu.alloc () : memref<64x16xf32>
  %dc = gpu.alloc () : memref<16x16xf32>
  gpu.memcpy %da, %a : memref<16x64xf32>, memref<16x64xf32>
  gpu.memcpy %db, %b : memref<64x16xf32>, memref<64x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%before = %zero) -> f32 {
      %x = memref.load %da[%bx, %k] : memref<16x64xf32>
      %y = memref.load %db[%k, %tx] : memref<64x16xf32>
      %product = arith.mulf %x, %y : f32
      %after = arith.addf %before, %product : f32
      scf.yield %after : f32
    }
    memref.store %sum, %dc[%bx, %tx] : memref<16x16xf32>
    gpu.terminator
  }
  gpu.memcpy %c, %dc : memref<16x16xf32>, memref<16x16xf32>
  gpu.dealloc %da : memref<16x64xf32>
  gpu.dealloc %db : memref<64x16xf32>
  gpu.dealloc %dc : memref<16x16xf32>

  %shown = memref.cast %c : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%shown) : (memref<*xf32>) -> ()
  memref.dealloc %a : memref<16x64xf32>
  memref.dealloc %b : memref<64x16xf32>
  memref.dealloc %c : memref<16x16xf32>
  return
}
