// The report's program: an empty kernel, launched and waited for in a loop.
module attributes {gpu.container_module} {
  gpu.module @test_func {
    gpu.func @test_func() kernel {
      gpu.return
    }
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    scf.for %i = %zero to %iterations step %one {
      gpu.launch_func @test_func::@test_func
          blocks in (%one, %one, %one) threads in (%one, %one, %one)
    }
    return
  }
}
