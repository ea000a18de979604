"""Packs files for tests on a machine that has an NVIDIA GPU but neither MLIR nor a network.

    python -m tests.devices.gpu.pack          writes build/gpu/pack.tar.gz; unpack it there, and run
    sh tests/devices/gpu/run.sh

The archive contains the sources of the last commit, and the programs and libraries that were built
on this machine. The archive also contains wheels of Python packages that the other machine lacks.
"""

from __future__ import annotations

import argparse
import subprocess
import tarfile
from pathlib import Path

from bench.models.program import CHAIN, COPIED
from bench.setup import pack
from mgpu_rt._lowering import cache, shared_library
from tests.devices.gpu import CHIP, KERNELS, tensormap
from tests.python.cli.test_fault import FAR
from tests.python.functions import DEVICE
from tests.python.functions import test_model as model
from tests.python.launches import KERNELS as EXAMPLE
from tests.support import lower
from tests.support.printing import print_library
from tests.support.sources import SOURCES

ROOT = Path(__file__).resolve().parents[3]
OUT = ROOT / "build" / "gpu"
NAN = ROOT / "tests" / "python" / "runtime" / "nan.mlir"
ITERATIONS = (None, 7, 1000)
SCIPY = "scipy==1.17.1"  # computes the expected sparse products


def lower_all() -> None:
    """Lowers every program in all forms that the tests need."""
    print_library()
    for program in SOURCES.values():
        loops = "%iterations" in program.read_text()
        for image in ("bin", "isa"):
            lower.code_objects(program, CHIP, image=image)
            for llvm in (22, 19):
                for count in ITERATIONS if loops else (None,):
                    lower.lower(program, llvm=llvm, chip=CHIP, iterations=count, image=image)
    for image in ("bin", "isa"):
        lower.code_objects(KERNELS, CHIP, image=image)
        lower.code_objects(NAN, CHIP, image=image)
        tensormap(image)
    for image in ("bin", "isa"):
        lower.lower(EXAMPLE, llvm=22, chip=CHIP, image=image)
    lower.code_objects(EXAMPLE, CHIP, image="bin")
    for variant in (CHAIN, COPIED):
        model.lowered(variant, CHIP, "isa")
    for llvm in (22, 19):
        shared_library.lower(DEVICE, chip=CHIP, llvm=llvm, image="isa")
    lower.lower(FAR, llvm=22, chip=CHIP, image="bin")
    for name in ("forum", "globals"):  # for the snippets on the stub of AMD's HIP
        lower.code_objects(SOURCES[name])
    lower.code_objects(SOURCES["forum"], "gfx1100")  # an image that the library must refuse


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tests.devices.gpu.pack", description="pack for a GPU machine"
    )
    parser.add_argument("--python", default="3.12", help="the release of Python there")
    options = parser.parse_args()
    lower_all()
    pack.wheels(options.python, SCIPY)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    built = [*(ROOT / "build" / "lib").iterdir(), *(ROOT / "build" / "cuhip").glob("*.so*")]
    built += [*(ROOT / "mgpu_rt").glob("*.so"), *pack.WHEELS.iterdir()]
    with tarfile.open(OUT / "pack.tar.gz", "w:gz") as archive:
        for path in (*(ROOT / name for name in tracked), *built):
            archive.add(path, path.relative_to(ROOT))
        for path in cache.OBJECTS.glob("*-*/*"):
            archive.add(path, Path("build", "objects", path.relative_to(cache.OBJECTS)))
    print(OUT / "pack.tar.gz", (OUT / "pack.tar.gz").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
