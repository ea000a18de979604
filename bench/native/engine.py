"""Runs a program with MLIR's ExecutionEngine, in a Python process with PyTorch on the same device.

    python engine.py PROGRAM.mlir LIBRARY...

PROGRAM.mlir is a program in the LLVM dialect whose main calls hosted.c to run in rounds. The
libraries, the first of which is the runtime, define the functions that the program calls. Needs
MLIR's Python bindings.
"""

from __future__ import annotations

import ctypes
import sys

import host
from mlir import ir
from mlir.execution_engine import ExecutionEngine


def main() -> None:
    host.use_pytorch()
    program, *libraries = sys.argv[1:]
    with open(program, encoding="utf-8") as source, ir.Context():
        engine = ExecutionEngine(ir.Module.parse(source.read()), shared_libs=libraries)
        engine.initialize()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup("main"))(None)


if __name__ == "__main__":
    main()
