// A launch in clusters, which LLVM 18 and later lower to a call that ROCm's runtime does not have.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @clustered() kernel {
      gpu.return
    }
  }

  func.func @main() {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    gpu.launch_func @kernels::@clustered
        clusters in (%two, %one, %one)
        blocks in (%two, %one, %one) threads in (%one, %one, %one)
    return
  }
}
