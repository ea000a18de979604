// A thousand steps as a compiler writes them: allocate, copy in, launch, copy out, free.
// Each step adds one to 256 numbers. Prints the last of them, 1000.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @increment(%numbers: memref<256xi64>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1 : i64
      %old = memref.load %numbers[%i] : memref<256xi64>
      %new = arith.addi %old, %one : i64
      memref.store %new, %numbers[%i] : memref<256xi64>
      gpu.return
    }
  }

  func.func @step(%host: memref<256xi64>) attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %start = gpu.wait async
    %device, %allocated = gpu.alloc async [%start] () : memref<256xi64>
    %copied = gpu.memcpy async [%allocated] %device, %host : memref<256xi64>, memref<256xi64>
    %launched = gpu.launch_func async [%copied] @kernels::@increment
        blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        args(%device : memref<256xi64>)
    %back = gpu.memcpy async [%launched] %host, %device : memref<256xi64>, memref<256xi64>
    %freed = gpu.dealloc async [%back] %device : memref<256xi64>
    gpu.wait [%freed]
    return
  }

  func.func private @printI64(i64)
  func.func private @printNewline()

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = arith.constant 256 : index
    %last = arith.constant 255 : index
    %iterations = arith.constant 1000 : index
    %nothing = arith.constant 0 : i64
    %success = arith.constant 0 : i32
    %host = memref.alloc() : memref<256xi64>
    scf.for %i = %zero to %count step %one {
      memref.store %nothing, %host[%i] : memref<256xi64>
    }
    scf.for %i = %zero to %iterations step %one {
      func.call @step(%host) : (memref<256xi64>) -> ()
    }
    %result = memref.load %host[%last] : memref<256xi64>
    func.call @printI64(%result) : (i64) -> ()
    func.call @printNewline() : () -> ()
    memref.dealloc %host : memref<256xi64>
    return %success : i32
  }
}
