"""Packs the files for a GPU machine without MLIR and without a network."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

from bench.setup import native, printing

BUILD = native.ROOT / "build"
WHEELS = BUILD / "gpu" / "wheels"
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


def write(python: str) -> Path:
    """Packs the libraries, the programs of build/bench and the wheels into an archive that is
    unpacked in a checkout."""
    printed = printing.print_library()
    wheels(python)
    folders = (BUILD / "lib", BUILD / "stock", BUILD / "hipstub", native.OUT, WHEELS)
    paths = [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]
    paths += [
        printed,
        printed.resolve(),
        *(BUILD / "cuhip").glob("*.so*"),
        *(native.ROOT / "mgpu_rt").glob("*.so"),
    ]
    archive = native.OUT / "pack.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        for path in paths:
            if path != archive and path.suffix not in (".o", ".d"):
                file.add(path, path.relative_to(native.ROOT))
    return archive
