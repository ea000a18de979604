// Operations of linalg on memrefs in the GPU's memory become kernels. Prints 4 rows of 18: each is
// the sum of 8 products of 1.5 and 1.5.
//
//     mgpu-rt run linalg.mlir
func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %value = arith.constant 1.5 : f32
  %zero = arith.constant 0.0 : f32
  %a = gpu.alloc () : memref<4x8xf32>
  %b = gpu.alloc () : memref<8x4xf32>
  %c = gpu.alloc () : memref<4x4xf32>
  linalg.fill ins(%value : f32) outs(%a : memref<4x8xf32>)
  linalg.fill ins(%value : f32) outs(%b : memref<8x4xf32>)
  linalg.fill ins(%zero : f32) outs(%c : memref<4x4xf32>)
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%c : memref<4x4xf32>)

  %host = memref.alloc() : memref<4x4xf32>
  gpu.memcpy %host, %c : memref<4x4xf32>, memref<4x4xf32>
  gpu.dealloc %a : memref<4x8xf32>
  gpu.dealloc %b : memref<8x4xf32>
  gpu.dealloc %c : memref<4x4xf32>
  %shown = memref.cast %host : memref<4x4xf32> to memref<*xf32>
  call @printMemrefF32(%shown) : (memref<*xf32>) -> ()
  memref.dealloc %host : memref<4x4xf32>
  return
}
