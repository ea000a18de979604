"""The device images of the player's programs, lowered by MLIR 22 into build/random_driver/images.

The kernels of each module add the module's number to every result, so that a result shows which
module's kernel has run. All loads of an image `plain0`, `plain1` ... may share a module. Only the
last plain image needs its own module for each load, because HIP can find this image's constant by
name. Each load of `cell0` ... has its own writable global, and the kernel `where` stores the
global's address.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import lower
from tests.support.folders import write_whole

ROOT = Path(__file__).resolve().parents[3]
OUT = ROOT / "build" / "random_driver" / "images"

#: The number that the kernels of each image add. A script numbers the images in this order.
PLAIN = {f"plain{i}": 101 + 2 * i for i in range(6)}
CELLS = {f"cell{i}": 1001 + 2 * i for i in range(3)}
VALUES = PLAIN | CELLS
NAMES = list(VALUES)
EXPORTS = [*PLAIN][-1]

#: A word w becomes 3 * w + k + the module's number, so the result depends on the order of two
#: launches.
_MIX = """
    gpu.func @{name}(%data: memref<?xi32>, %count: index, %k: i32) kernel {{
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %size = arith.constant 64 : index
      %three = arith.constant 3 : i32
      %before = arith.muli %block, %size : index
      %i = arith.addi %before, %thread : index
      %in = arith.cmpi ult, %i, %count : index
      scf.if %in {{
        %address = llvm.mlir.addressof @value : !llvm.ptr<{space}>
        %value = llvm.load volatile %address : !llvm.ptr<{space}> -> i32
        {spin}
        %old = memref.load %data[%i] : memref<?xi32>
        %product = arith.muli %old, %three : i32
        %sum = arith.addi %product, {k} : i32
        %new = arith.addi %sum, %value : i32
        memref.store %new, %data[%i] : memref<?xi32>
      }}
      gpu.return
    }}
"""

#: The kernel `slow` computes in a loop before it reads the data. The loop's result never changes
#: `k`, but the compiler cannot predict this result.
_SPIN = """
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %rounds = arith.constant {rounds} : index
        %even = arith.constant 2 : i32
        %odd = arith.constant 1 : i32
        %seed = arith.muli %value, %even : i32
        %spun = scf.for %r = %zero to %rounds step %one iter_args(%s = %seed) -> (i32) {{
          %t = arith.muli %s, %k : i32
          %u = arith.addi %t, %s : i32
          %e = arith.muli %u, %even : i32
          scf.yield %e : i32
        }}
        %nothing = arith.andi %spun, %odd : i32
        %slow_k = arith.addi %k, %nothing : i32
"""

_COPY = """
    gpu.func @copy(%to: memref<?xi32>, %from: memref<?xi32>, %count: index) kernel {{
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %size = arith.constant 64 : index
      %before = arith.muli %block, %size : index
      %i = arith.addi %before, %thread : index
      %in = arith.cmpi ult, %i, %count : index
      scf.if %in {{
        %address = llvm.mlir.addressof @value : !llvm.ptr<{space}>
        %value = llvm.load volatile %address : !llvm.ptr<{space}> -> i32
        %old = memref.load %from[%i] : memref<?xi32>
        %new = arith.addi %old, %value : i32
        memref.store %new, %to[%i] : memref<?xi32>
      }}
      gpu.return
    }}
"""

#: Stores the cell's new value, and its address as two words.
_CELL = """
    llvm.mlir.global external @cell(0 : i32) {{addr_space = 1 : i32}} : i32

    gpu.func @bump(%out: memref<?xi32>) kernel {{
      %zero = arith.constant 0 : index
      %three = arith.constant 3 : i32
      %address = llvm.mlir.addressof @value : !llvm.ptr<{space}>
      %value = llvm.load volatile %address : !llvm.ptr<{space}> -> i32
      %cell = llvm.mlir.addressof @cell : !llvm.ptr<1>
      %old = llvm.load %cell : !llvm.ptr<1> -> i32
      %product = arith.muli %old, %three : i32
      %new = arith.addi %product, %value : i32
      llvm.store %new, %cell : i32, !llvm.ptr<1>
      memref.store %new, %out[%zero] : memref<?xi32>
      gpu.return
    }}

    gpu.func @where(%out: memref<?xi32>) kernel {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %half = arith.constant 32 : i64
      %cell = llvm.mlir.addressof @cell : !llvm.ptr<1>
      %address = llvm.ptrtoint %cell : !llvm.ptr<1> to i64
      %low = arith.trunci %address : i64 to i32
      %shifted = arith.shrui %address, %half : i64
      %high = arith.trunci %shifted : i64 to i32
      memref.store %low, %out[%zero] : memref<?xi32>
      memref.store %high, %out[%one] : memref<?xi32>
      gpu.return
    }}
"""


_READ = re.compile(r"%address = .*\n\s*%value = llvm\.load .*")


def module(name: str, rounds: int, space: int, chip: str) -> str:
    """Returns the text of an image's gpu.module; `space` is the address space of constants.
    NVIDIA's driver even finds constants that are not exported. In a build for NVIDIA, only the
    image EXPORTS therefore has a constant."""
    value = VALUES[name]
    spin = _SPIN.format(rounds=rounds)
    linkage = "external" if name == EXPORTS else "internal"
    body = f"    llvm.mlir.global {linkage} constant @value({value} : i32) "
    body += f"{{addr_space = {space} : i32}} : i32\n"
    body += _MIX.format(name="mix", spin="", k="%k", space=space)
    body += _MIX.format(name="slow", spin=spin, k="%slow_k", space=space)
    body += _COPY.format(space=space)
    if name in CELLS:
        body += _CELL.format(space=space)
    if chip.startswith("sm_") and name != EXPORTS:
        body = _READ.sub(f"%value = arith.constant {value} : i32", body.partition("\n")[2])
    return f"  gpu.module @{name} {{\n{body}  }}\n"


def write(chip: str, image: str | None = None, rounds: int = 2000) -> Path:
    """Lowers all images for a chip; returns a directory with a file for each."""
    text = "module attributes {gpu.container_module} {\n"
    text += "".join(module(name, rounds, 4, chip) for name in NAMES) + "}\n"
    directory = OUT / chip
    program = directory / "kernels.mlir"
    write_whole(program, text)
    for name, content in lower.code_objects(program, chip, image=image).items():
        write_whole(directory / name, content)
    return directory
