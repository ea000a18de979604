// y = 2 x + y on 256 numbers of which x[i] is i and y[i] is 1. Prints the last, 511.
//
// RUN: mgpu-rt lower --emit mlir --chip %chip %s -o - \
// RUN: | mlir-runner -e main --entry-point-result=i32 \
// RUN:     --shared-libs=%mlir_rocm_runtime,%mlir_c_runner_utils \
// RUN: | FileCheck %s
// CHECK: 511
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @saxpy(%x: memref<256xf32>, %y: memref<256xf32>) kernel {
      %i = gpu.thread_id x
      %two = arith.constant 2.0 : f32
      %xi = memref.load %x[%i] : memref<256xf32>
      %yi = memref.load %y[%i] : memref<256xf32>
      %product = arith.mulf %two, %xi : f32
      %sum = arith.addf %product, %yi : f32
      memref.store %sum, %y[%i] : memref<256xf32>
      gpu.return
    }
  }

  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = arith.constant 256 : index
    %last = arith.constant 255 : index
    %ones = arith.constant 1.0 : f32
    %success = arith.constant 0 : i32
    %x = memref.alloc() : memref<256xf32>
    %y = memref.alloc() : memref<256xf32>
    scf.for %i = %zero to %count step %one {
      %integer = arith.index_cast %i : index to i32
      %number = arith.sitofp %integer : i32 to f32
      memref.store %number, %x[%i] : memref<256xf32>
      memref.store %ones, %y[%i] : memref<256xf32>
    }
    %start = gpu.wait async
    %dx, %a = gpu.alloc async [%start] () : memref<256xf32>
    %dy, %b = gpu.alloc async [%a] () : memref<256xf32>
    %c = gpu.memcpy async [%b] %dx, %x : memref<256xf32>, memref<256xf32>
    %d = gpu.memcpy async [%c] %dy, %y : memref<256xf32>, memref<256xf32>
    %e = gpu.launch_func async [%d] @kernels::@saxpy
        blocks in (%one, %one, %one) threads in (%count, %one, %one)
        args(%dx : memref<256xf32>, %dy : memref<256xf32>)
    %f = gpu.memcpy async [%e] %y, %dy : memref<256xf32>, memref<256xf32>
    %g = gpu.dealloc async [%f] %dx : memref<256xf32>
    %h = gpu.dealloc async [%g] %dy : memref<256xf32>
    gpu.wait [%h]
    %result = memref.load %y[%last] : memref<256xf32>
    func.call @printF32(%result) : (f32) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %x : memref<256xf32>
    memref.dealloc %y : memref<256xf32>
    return %success : i32
  }
}
