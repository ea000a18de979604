// 50 kernels in 5 modules, each launched once an iteration: what a lowered model does.
module attributes {gpu.container_module} {
  gpu.module @part0 {
    gpu.func @kernel00() kernel { gpu.return }
    gpu.func @kernel01() kernel { gpu.return }
    gpu.func @kernel02() kernel { gpu.return }
    gpu.func @kernel03() kernel { gpu.return }
    gpu.func @kernel04() kernel { gpu.return }
    gpu.func @kernel05() kernel { gpu.return }
    gpu.func @kernel06() kernel { gpu.return }
    gpu.func @kernel07() kernel { gpu.return }
    gpu.func @kernel08() kernel { gpu.return }
    gpu.func @kernel09() kernel { gpu.return }
  }

  gpu.module @part1 {
    gpu.func @kernel10() kernel { gpu.return }
    gpu.func @kernel11() kernel { gpu.return }
    gpu.func @kernel12() kernel { gpu.return }
    gpu.func @kernel13() kernel { gpu.return }
    gpu.func @kernel14() kernel { gpu.return }
    gpu.func @kernel15() kernel { gpu.return }
    gpu.func @kernel16() kernel { gpu.return }
    gpu.func @kernel17() kernel { gpu.return }
    gpu.func @kernel18() kernel { gpu.return }
    gpu.func @kernel19() kernel { gpu.return }
  }

  gpu.module @part2 {
    gpu.func @kernel20() kernel { gpu.return }
    gpu.func @kernel21() kernel { gpu.return }
    gpu.func @kernel22() kernel { gpu.return }
    gpu.func @kernel23() kernel { gpu.return }
    gpu.func @kernel24() kernel { gpu.return }
    gpu.func @kernel25() kernel { gpu.return }
    gpu.func @kernel26() kernel { gpu.return }
    gpu.func @kernel27() kernel { gpu.return }
    gpu.func @kernel28() kernel { gpu.return }
    gpu.func @kernel29() kernel { gpu.return }
  }

  gpu.module @part3 {
    gpu.func @kernel30() kernel { gpu.return }
    gpu.func @kernel31() kernel { gpu.return }
    gpu.func @kernel32() kernel { gpu.return }
    gpu.func @kernel33() kernel { gpu.return }
    gpu.func @kernel34() kernel { gpu.return }
    gpu.func @kernel35() kernel { gpu.return }
    gpu.func @kernel36() kernel { gpu.return }
    gpu.func @kernel37() kernel { gpu.return }
    gpu.func @kernel38() kernel { gpu.return }
    gpu.func @kernel39() kernel { gpu.return }
  }

  gpu.module @part4 {
    gpu.func @kernel40() kernel { gpu.return }
    gpu.func @kernel41() kernel { gpu.return }
    gpu.func @kernel42() kernel { gpu.return }
    gpu.func @kernel43() kernel { gpu.return }
    gpu.func @kernel44() kernel { gpu.return }
    gpu.func @kernel45() kernel { gpu.return }
    gpu.func @kernel46() kernel { gpu.return }
    gpu.func @kernel47() kernel { gpu.return }
    gpu.func @kernel48() kernel { gpu.return }
    gpu.func @kernel49() kernel { gpu.return }
  }

  func.func @step() attributes {llvm.noinline} {
    %one = arith.constant 1 : index
    gpu.launch_func @part0::@kernel00 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel01 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel02 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel03 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel04 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel05 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel06 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel07 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel08 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part0::@kernel09 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel10 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel11 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel12 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel13 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel14 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel15 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel16 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel17 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel18 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part1::@kernel19 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel20 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel21 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel22 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel23 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel24 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel25 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel26 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel27 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel28 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part2::@kernel29 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel30 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel31 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel32 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel33 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel34 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel35 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel36 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel37 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel38 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part3::@kernel39 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel40 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel41 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel42 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel43 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel44 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel45 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel46 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel47 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel48 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    gpu.launch_func @part4::@kernel49 blocks in (%one, %one, %one) threads in (%one, %one, %one)
    return
  }

  func.func @main() {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %iterations = arith.constant 1000 : index
    scf.for %i = %zero to %iterations step %one {
      func.call @step() : () -> ()
    }
    return
  }
}
