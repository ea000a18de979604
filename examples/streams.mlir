// A kernel doubles numbers that were copied to the GPU on another stream. Nothing orders the two:
// the launch's token should come from `gpu.wait async [%ready, %copied]`. The number printed is 42
// only if the copy happens to end first. `mgpu-rt check` reports it (docs/check.md).
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @double(%data: memref<?xi64>) kernel {
      %i = gpu.thread_id x
      %old = memref.load %data[%i] : memref<?xi64>
      %new = arith.addi %old, %old : i64
      memref.store %new, %data[%i] : memref<?xi64>
      gpu.return
    }
  }

  func.func private @printI64(i64)
  func.func private @printNewline()

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = arith.constant 64 : index
    %half = arith.constant 21 : i64
    %status = arith.constant 0 : i32
    %host = memref.alloc(%count) : memref<?xi64>
    scf.for %i = %zero to %count step %one {
      memref.store %half, %host[%i] : memref<?xi64>
    }
    %first = gpu.wait async
    %data, %made = gpu.alloc async [%first] (%count) : memref<?xi64>
    %copied = gpu.memcpy async [%made] %data, %host : memref<?xi64>, memref<?xi64>
    %ready = gpu.wait async
    %doubled = gpu.launch_func async [%ready] @kernels::@double
        blocks in (%one, %one, %one) threads in (%count, %one, %one) args(%data : memref<?xi64>)
    %back = gpu.memcpy async [%doubled] %host, %data : memref<?xi64>, memref<?xi64>
    gpu.wait [%copied, %back]
    %last = gpu.wait async
    %freed = gpu.dealloc async [%last] %data : memref<?xi64>
    gpu.wait [%freed]
    %value = memref.load %host[%one] : memref<?xi64>
    func.call @printI64(%value) : (i64) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<?xi64>
    return %status : i32
  }
}
