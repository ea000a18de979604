"""Programs whose sparse products MLIR's sparse compiler lowers to calls of a library."""

from __future__ import annotations

import subprocess
from pathlib import Path

#: MLIR's names for the formats; positions and coordinates have 32 bits.
ENCODINGS = {
    "coo": "(d0 : compressed(nonunique), d1 : singleton(soa))",
    "csr": "(d0 : dense, d1 : compressed)",
    "csc": "(d1 : dense, d0 : compressed)",
}

#: Maps each GPU for which a program is lowered to the options of mlir-opt's pass.
TARGETS = {
    "gfx90a": "gpu-triple=amdgcn-amd-amdhsa gpu-chip=gfx90a gpu-format=bin",
    "sm_90": "gpu-triple=nvptx64-nvidia-cuda gpu-chip=sm_90 gpu-format=isa",
}

#: The elements of A, an 8 × 8 matrix in which rows 2 and 4 to 6 are empty.
ELEMENTS = [(0, 0, 1.0), (0, 1, 2.0), (1, 3, 3.0), (3, 7, 4.0), (7, 0, 5.0), (7, 7, -1.5)]

_HEAD = """#S = #sparse_tensor.encoding<{{
  map = (d0, d1) -> {encoding}, posWidth = 32, crdWidth = 32
}}>
module {{
  llvm.func @mgpuCreateSparseEnv()
  llvm.func @mgpuDestroySparseEnv()
"""
_MATRIX = """  func.func @sparse() -> tensor<8x8x{type}, #S> {{
    %dense = arith.constant sparse<[{places}], [{values}]> : tensor<8x8x{type}>
    %s = sparse_tensor.convert %dense : tensor<8x8x{type}> to tensor<8x8x{type}, #S>
    return %s : tensor<8x8x{type}, #S>
  }}
  func.func @ramp() -> tensor<{size}x{type}> {{
    %r = tensor.generate {{
    ^bb0({indices}):
      %sum = arith.addi %i, {last} : index
      %word = arith.index_cast %sum : index to i32
      %real = arith.sitofp %word : i32 to {type}
      tensor.yield %real : {type}
    }} : tensor<{size}x{type}>
    return %r : tensor<{size}x{type}>
  }}
"""
_DENSE = """  func.func @product(%a: tensor<8x8x{type}, #S>, %b: tensor<{size}x{type}>,
                     %c: tensor<{size}x{type}>) -> tensor<{size}x{type}> {{
    %d = linalg.{op} ins(%a, %b : tensor<8x8x{type}, #S>, tensor<{size}x{type}>)
                     outs(%c : tensor<{size}x{type}>) -> tensor<{size}x{type}>
    return %d : tensor<{size}x{type}>
  }}
  func.func @main() {{
    llvm.call @mgpuCreateSparseEnv() : () -> ()
    %zero = arith.constant 0.0 : {type}
    %first = arith.constant 0 : index
    %times = arith.constant {times} : index
    %one = arith.constant 1 : index
    %a = call @sparse() : () -> tensor<8x8x{type}, #S>
    %b = call @ramp() : () -> tensor<{size}x{type}>
    %c = call @ramp() : () -> tensor<{size}x{type}>
    %d = scf.for %n = %first to %times step %one iter_args(%e = %c) -> tensor<{size}x{type}> {{
      %f = func.call @product(%a, %b, %e) : (tensor<8x8x{type}, #S>, tensor<{size}x{type}>,
                                             tensor<{size}x{type}>) -> tensor<{size}x{type}>
      scf.yield %f : tensor<{size}x{type}>
    }}
    %v = vector.transfer_read %d[{firsts}], %zero : tensor<{size}x{type}>, vector<{size}x{type}>
    vector.print %v : vector<{size}x{type}>
    llvm.call @mgpuDestroySparseEnv() : () -> ()
    return
  }}
}}
"""
_SPARSE = """  func.func @product(%a: tensor<8x8x{type}, #S>,
                     %b: tensor<8x8x{type}, #S>) -> tensor<8x8x{type}, #S> {{
    %c = tensor.empty() : tensor<8x8x{type}, #S>
    %d = linalg.matmul ins(%a, %b : tensor<8x8x{type}, #S>, tensor<8x8x{type}, #S>)
                       outs(%c : tensor<8x8x{type}, #S>) -> tensor<8x8x{type}, #S>
    return %d : tensor<8x8x{type}, #S>
  }}
  func.func @main() {{
    llvm.call @mgpuCreateSparseEnv() : () -> ()
    %zero = arith.constant 0.0 : {type}
    %first = arith.constant 0 : index
    %a = call @sparse() : () -> tensor<8x8x{type}, #S>
    %d = call @product(%a, %a) : (tensor<8x8x{type}, #S>, tensor<8x8x{type}, #S>)
                                 -> tensor<8x8x{type}, #S>
    %e = sparse_tensor.convert %d : tensor<8x8x{type}, #S> to tensor<8x8x{type}>
    %v = vector.transfer_read %e[%first, %first], %zero : tensor<8x8x{type}>, vector<8x8x{type}>
    vector.print %v : vector<8x8x{type}>
    llvm.call @mgpuDestroySparseEnv() : () -> ()
    return
  }}
}}
"""
_SAMPLED = """  func.func @product(%s: tensor<8x8x{type}, #S>, %a: tensor<8x8x{type}>,
                     %b: tensor<8x8x{type}>) -> tensor<8x8x{type}, #S> {{
    %zero = arith.constant 0.0 : {type}
    %d = linalg.generic {{
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]
    }} ins(%a, %b : tensor<8x8x{type}>, tensor<8x8x{type}>) outs(%s : tensor<8x8x{type}, #S>) {{
    ^bb0(%x: {type}, %y: {type}, %old: {type}):
      %u = sparse_tensor.unary %old : {type} to {type}
        present = {{
        ^bb0(%v: {type}):
          %m = arith.mulf %x, %y : {type}
          sparse_tensor.yield %m : {type}
        }}
        absent = {{}}
      %r = sparse_tensor.reduce %old, %u, %zero : {type} {{
      ^bb0(%p: {type}, %q: {type}):
        %t = arith.addf %p, %q : {type}
        sparse_tensor.yield %t : {type}
      }}
      linalg.yield %r : {type}
    }} -> tensor<8x8x{type}, #S>
    return %d : tensor<8x8x{type}, #S>
  }}
  func.func @main() {{
    llvm.call @mgpuCreateSparseEnv() : () -> ()
    %zero = arith.constant 0.0 : {type}
    %first = arith.constant 0 : index
    %a = call @sparse() : () -> tensor<8x8x{type}, #S>
    %b = call @ramp() : () -> tensor<8x8x{type}>
    %d = call @product(%a, %b, %b) : (tensor<8x8x{type}, #S>, tensor<8x8x{type}>,
                                      tensor<8x8x{type}>) -> tensor<8x8x{type}, #S>
    %e = sparse_tensor.convert %d : tensor<8x8x{type}, #S> to tensor<8x8x{type}>
    %v = vector.transfer_read %e[%first, %first], %zero : tensor<8x8x{type}>, vector<8x8x{type}>
    vector.print %v : vector<8x8x{type}>
    llvm.call @mgpuDestroySparseEnv() : () -> ()
    return
  }}
}}
"""


def program(op: str, form: str, type: str, times: int = 1) -> str:
    """Returns the program in MLIR. `op` is matmul or matvec (A times a dense factor), spgemm
    (A by A), or sddmm. With sddmm, a product of dense factors is added to the elements of A."""
    vector = op == "matvec"
    words = {
        "encoding": ENCODINGS[form],
        "type": type,
        "op": op,
        "times": times,
        "size": "8" if vector else "8x8",
        "indices": "%i: index" if vector else "%i: index, %j: index",
        "last": "%i" if vector else "%j",
        "firsts": "%first" if vector else "%first, %first",
        "places": ", ".join(f"[{row}, {column}]" for row, column, _ in ELEMENTS),
        "values": ", ".join(str(value) for *_, value in ELEMENTS),
    }
    main = {"spgemm": _SPARSE, "sddmm": _SAMPLED}.get(op, _DENSE)
    return (_HEAD + _MATRIX + main).format(**words)


def lower(text: str, out: Path, chip: str = "gfx90a") -> Path:
    """Lowers the program to LLVM's dialect, ready for mlir-runner-22."""
    source, result = out / "program.mlir", out / "program.llvm.mlir"
    source.write_text(text)
    passes = f"enable-runtime-library=true enable-gpu-libgen {TARGETS[chip]}"
    subprocess.run(
        ["mlir-opt-22", source, f"--sparsifier={passes}", "-o", result], check=True, timeout=120
    )
    return result
