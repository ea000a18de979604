"""Lowers kernels.mlir, for the examples.

CHIP names the GPU, gfx90a by default. On a machine without MLIR, OBJECT names an object file that
`mgpu-rt lower` has made from kernels.mlir on another machine.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("kernels.mlir")
COMMAND = (sys.executable, "-m", "mgpu_rt")

_folder = tempfile.TemporaryDirectory()  # the folder lives as long as the program


def _lower(emit: str, name: str) -> Path:
    out = Path(_folder.name, name)
    chip = ("--chip", os.environ.get("CHIP", "gfx90a"))
    subprocess.run((*COMMAND, "lower", SOURCE, *chip, "--emit", emit, "-o", out), check=True)
    return out


def object_file() -> Path:
    """Returns the object file of the host functions. The object file contains the kernels as an
    image of device code."""
    return Path(os.environ.get("OBJECT") or _lower("object", "kernels.o"))


def llvm_dialect() -> str:
    """Returns the uncompiled program, for MLIR's ExecutionEngine."""
    return _lower("mlir", "kernels.mlir").read_text()


def shared_library() -> Path:
    """Returns a shared library of the host functions, for ctypes; loading this library loads the
    kernels."""
    out = Path(_folder.name, "kernels.so")
    flags = subprocess.run((*COMMAND, "config", "--libs"), check=True, capture_output=True)
    link = ("cc", "-shared", object_file(), *shlex.split(flags.stdout.decode()), "-o", out)
    subprocess.run(link, check=True)
    return out
