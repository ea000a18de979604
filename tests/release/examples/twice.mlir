// Doubles four numbers on the GPU, lowered and run as LLVM's integration tests are.
//
// RUN: mlir-opt %s \
// RUN: | mlir-opt -convert-scf-to-cf \
// RUN: | mlir-opt -gpu-kernel-outlining \
// RUN: | mlir-opt -pass-pipeline='builtin.module(gpu.module(strip-debuginfo,convert-gpu-to-rocdl{use-bare-ptr-memref-call-conv=true}),rocdl-attach-target{chip=%chip abi=400})' \
// RUN: | mlir-opt -gpu-to-llvm=use-bare-pointers-for-kernels=true -reconcile-unrealized-casts -gpu-module-to-binary \
// RUN: | mlir-runner \
// RUN:   --shared-libs=%mlir_rocm_runtime \
// RUN:   --shared-libs=%mlir_runner_utils \
// RUN:   --entry-point-result=void \
// RUN: | FileCheck %s
// CHECK: [0, 2, 4, 6]
func.func private @printMemrefI32(memref<*xi32>)

func.func @main() {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %numbers = memref.alloc() : memref<4xi32>
  scf.for %i = %zero to %four step %one {
    %number = arith.index_cast %i : index to i32
    memref.store %number, %numbers[%i] : memref<4xi32>
  }
  %start = gpu.wait async
  %there, %a = gpu.alloc async [%start] () : memref<4xi32>
  %b = gpu.memcpy async [%a] %there, %numbers : memref<4xi32>, memref<4xi32>
  gpu.wait [%b]
  gpu.launch blocks(%x, %y, %z) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%bx = %four, %by = %one, %bz = %one) {
    %number = memref.load %there[%tx] : memref<4xi32>
    %twice = arith.addi %number, %number : i32
    memref.store %twice, %there[%tx] : memref<4xi32>
    gpu.terminator
  }
  %again = gpu.wait async
  %c = gpu.memcpy async [%again] %numbers, %there : memref<4xi32>, memref<4xi32>
  %d = gpu.dealloc async [%c] %there : memref<4xi32>
  gpu.wait [%d]
  %any = memref.cast %numbers : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %numbers : memref<4xi32>
  return
}
