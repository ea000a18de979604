"""Lowers MLIR programs to host objects, to device images, and to the input of mlir-runner.

There are two toolchains. The LLVM release decides how the program calls the runtime:

* 22: LLVM 22 lowers the whole program. A global constructor loads the module. A launch takes 5
  calls, or 2 in a chain of tokens: it then creates no stream and does not wait.

* 19: LLVM 22 lowers the device code and 19 the host code. A launch takes 7 calls, or 4 in a chain.
  AMD's HIP 5.2.3 refuses the device code of 19.

Chips named sm_... are NVIDIA's. Programs for NVIDIA's chips are lowered through NVVM. The device
code is a cubin if NVIDIA's ptxas is in PATH, otherwise PTX, which the driver compiles.

`toolchain` finds and runs tools, `steps` runs a chain of tools, and `pipelines` defines each
release's passes. `preparation` adds the passes that a program needs. `object_files` builds and
links object files, and `cache` stores results. `entry` makes executables, and `shared_library`
makes libraries for Python.
"""
