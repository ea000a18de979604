"""Ordinary operations, in kernels and in host code, need no pass of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lower

KERNEL_WITH = """
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @f(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %z = arith.constant 0.0 : f32
      %v = memref.load %x[%i] : memref<?xf32>
      %body
      memref.store %w, %x[%i] : memref<?xf32>
      gpu.return
    }
  }
}
"""
FUNCTION_WITH = "func.func @f(%a: f32) -> f32 {\n%body\nreturn %r : f32\n}\n"
IN_KERNELS = {
    "affine": "%j = affine.apply affine_map<(d0) -> (d0 mod 2)>(%i)\n"
    "%w = memref.load %x[%j] : memref<?xf32>",
    "vector.transfer": "%q = vector.transfer_read %x[%c0], %z : memref<?xf32>, vector<4xf32>\n"
    "%s = vector.reduction <maximumf>, %q : vector<4xf32> into f32\n"
    "%w = arith.addf %v, %s : f32",
    "vector.transfer of two dimensions": "%y = memref.reinterpret_cast %x to offset: [0], "
    "sizes: [4, 4], strides: [4, 1] : memref<?xf32> to memref<4x4xf32>\n"
    "%q = vector.transfer_read %y[%c0, %i], %z : memref<4x4xf32>, vector<2x4xf32>\n"
    "vector.transfer_write %q, %y[%c0, %c0] : vector<2x4xf32>, memref<4x4xf32>\n"
    "%w = math.sqrt %v : f32",
    "vector.load": "%q = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>\n"
    "%s = vector.reduction <add>, %q : vector<4xf32> into f32\n%w = arith.addf %v, %s : f32",
    "index": "%j = index.add %i, %c0\n%w = memref.load %x[%j] : memref<?xf32>",
    "math": "%w = math.erf %v : f32",
    "complex": "%q = complex.create %v, %v : complex<f32>\n"
    "%p = complex.sqrt %q : complex<f32>\n%w = complex.re %p : complex<f32>",
    "fpowi": "%n = arith.constant 2 : i32\n%w = math.fpowi %v, %n : f32, i32",
    "math on bf16": "%b = arith.truncf %v : f32 to bf16\n%e = math.exp %b : bf16\n"
    "%w = arith.extf %e : bf16 to f32",
    "linalg": "linalg.fill ins(%z : f32) outs(%x : memref<?xf32>)\n%w = math.sqrt %v : f32",
    "shuffle": "%o = arith.constant 1 : i32\n%wd = arith.constant 64 : i32\n"
    "%w, %ok = gpu.shuffle xor %v, %o, %wd : f32",
}
IN_HOST_CODE = {
    "complex": "%q = complex.create %a, %a : complex<f32>\n"
    "%p = complex.sqrt %q : complex<f32>\n%r = complex.re %p : complex<f32>",
    "clampf": "%r = math.clampf %a to [%a, %a] : f32",
    "erf": "%r = math.erf %a : f32",
    "cbrt": "%r = math.cbrt %a : f32",
    "sin": "%r = math.sin %a : f32",
    "rounded up": "%c = arith.constant 3 : index\n%j = arith.ceildivui %c, %c : index\n"
    "%q = arith.index_cast %j : index to i32\n%r = arith.sitofp %q : i32 to f32",
    "vector": "%q = vector.broadcast %a : f32 to vector<4xf32>\n"
    "%r = vector.reduction <add>, %q : vector<4xf32> into f32",
    "affine": "%c = arith.constant 3 : index\n"
    "%j = affine.apply affine_map<()[s0] -> (s0 floordiv 2)>()[%c]\n"
    "%q = arith.index_cast %j : index to i32\n%r = arith.sitofp %q : i32 to f32",
}


@pytest.mark.check
@pytest.mark.parametrize(
    ("around", "body", "llvm"),
    [
        *((KERNEL_WITH, body, 22) for body in IN_KERNELS.values()),
        *((FUNCTION_WITH, body, llvm) for body in IN_HOST_CODE.values() for llvm in (22, 19)),
    ],
)
def test_ordinary_operations_are_lowered(around: str, body: str, llvm: int, tmp_path: Path) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(around.replace("%body", body))
    lower.lower(program, llvm=llvm)
