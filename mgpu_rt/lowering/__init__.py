"""Lowers MLIR programs: to host objects, to device images, to what mlir-runner takes.

There are three toolchains. The LLVM release decides how the program will call the runtime:

* 22: all by LLVM 22. A global constructor loads the module, and a launch takes 5 calls.
* 19: device code by 22, host code by 19, 7 calls a launch. 19's own device code is not used, since
  AMD's HIP 5.2.3 refuses it.
* 15: the command of the forum's report, word for word, 7 calls a launch. It takes programs with one
  launch of each kernel and no host function that takes a dynamic memref.

A chip named sm_... is NVIDIA's: 22 and 19 lower for it through NVVM, to a cubin where NVIDIA's
ptxas is in PATH, and else to PTX, which the driver compiles.

`toolchain` finds and runs tools, `pipelines` knows each release's passes, `object_files` makes
object files and executables, `cache` keeps results, and `lower` puts these together for programs in
files.
"""
