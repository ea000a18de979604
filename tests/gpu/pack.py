"""Packs what the tests need on a machine with an NVIDIA GPU and neither MLIR nor a network.

    python -m tests.gpu.pack          writes build/gpu/pack.tar.gz; unpack it there, and run
    sh tests/gpu/run.sh

The archive holds the sources of the last commit, the programs as lowered here, the libraries as
built here, and wheels of the Python packages that PYTHON there lacks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from pathlib import Path

from bench import PROGRAMS
from bench.setup.printing import print_library
from mgpu_rt.lowering import cache, lower
from tests.gpu import CHIP, KERNELS, tensormap
from tests.python import KERNELS as EXAMPLE

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "build" / "gpu"
ITERATIONS = (None, 7, 1000)
PACKAGES = ("cffi==2.1.1", "pycparser==3.0", "click==8.5.1", "pyelftools==0.33", "rich==15.0.0")
PACKAGES += ("msgpack==1.2.4",)


def lower_all() -> None:
    """Lowers every program in every form that the tests ask for."""
    print_library()
    for program in sorted(PROGRAMS.glob("*.mlir")):
        loops = "%iterations" in program.read_text()
        for image in ("bin", "isa"):
            lower.code_objects(program, CHIP, image=image)
            for llvm in (22, 19):
                for count in ITERATIONS if loops else (None,):
                    lower.lower(program, llvm=llvm, chip=CHIP, iterations=count, image=image)
    for image in ("bin", "isa"):
        lower.code_objects(KERNELS, CHIP, image=image)
        tensormap(image)
    for image in ("bin", "isa"):
        lower.lower(EXAMPLE, llvm=22, chip=CHIP, image=image)
    lower.code_objects(EXAMPLE, CHIP, image="bin")
    for name in ("forum", "globals"):  # for the snippets on the stub of AMD's HIP
        lower.code_objects(PROGRAMS / f"{name}.mlir")
    lower.code_objects(PROGRAMS / "forum.mlir", "gfx1100")  # which is to be refused


def wheels(python: str) -> None:
    """Downloads the packages as wheels for that release of Python."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", f"--python-version={python}", "--implementation=cp"]
    command += ["--platform=manylinux2014_x86_64", "--platform=manylinux_2_17_x86_64"]
    subprocess.run([*command, f"--dest={OUT / 'wheels'}", *PACKAGES], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.gpu.pack", description="pack for a GPU machine")
    parser.add_argument("--python", default="3.12", help="the release of Python there")
    options = parser.parse_args()
    lower_all()
    wheels(options.python)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    built = [*(ROOT / "build" / "lib").iterdir(), *(ROOT / "build" / "cuhip").glob("*.so*")]
    built += [*(ROOT / "mgpu_rt").glob("*.so"), *(OUT / "wheels").iterdir()]
    built += [path for path in cache.OBJECTS.iterdir() if path.is_file()]
    with tarfile.open(OUT / "pack.tar.gz", "w:gz") as archive:
        for path in (*(ROOT / name for name in tracked), *built):
            archive.add(path, path.relative_to(ROOT))
    print(OUT / "pack.tar.gz", (OUT / "pack.tar.gz").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
