"""Runs the RUN lines of saxpy.mlir in LLVM's JIT, on an emulated GPU or on the GPU that DEVICE
names.

lit -v .
"""
# ruff: noqa: F821 - lit defines config

import os
import shutil
import subprocess
from pathlib import Path

import lit.formats

device = os.environ.get("DEVICE", "softgpu")
chip = device if device.startswith("gfx") else os.environ.get("CHIP", "gfx90a")
runner = shutil.which("mlir-runner-22") or "mlir-runner"
llvm = Path(runner).resolve().parents[1]
asked = subprocess.run(["mgpu-rt", "config", "--path"], capture_output=True, text=True, check=True)

config.name = "saxpy"
config.suffixes = [".mlir"]
config.test_format = lit.formats.ShTest()
config.substitutions += [
    ("mlir-runner", f"mgpu-rt run --device {device} --fail-on-error -- {runner}"),
    ("%chip", chip),
    ("%mlir_rocm_runtime", f"{asked.stdout.strip()}/libmlir_rocm_runtime.so"),
    *(
        (f"%mlir_{name}", str(min(llvm.glob(f"lib/libmlir_{name}.so*"))))
        for name in ("c_runner_utils", "runner_utils")  # printF32, printMemrefF32
    ),
    ("FileCheck", shutil.which("FileCheck-22") or shutil.which("FileCheck") or "filecheck"),
]
for name in ("HOME", "XDG_DATA_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
