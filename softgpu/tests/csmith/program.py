"""A random program: its source, its kernel, and its checksum on the CPU."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt._lowering import pipelines
from tests.devices.rocm import packages
from tests.devices.rocm.releases import RELEASES
from tests.devices.rocm.surroundings import Surroundings, surroundings

CLANG = "clang-22"
SEEDS = range(1160)  # about 150 of them do not end
OPTIONS = ("--no-argc", "--concise")
TIME_LIMIT = 60  # seconds for one step; most take less than one
CPU_LIMIT = 1  # seconds on the processor; a program that ends takes milliseconds
_PACKAGES = ("csmith", "libcsmith-dev")
_HERE = Path(__file__).parent


class Endless(Exception):
    """Raised for a program that never ends on the CPU; Csmith generates some endless programs."""


def _without_queues(image: bytes) -> bytes:
    """Marks the hidden arguments for OpenCL's queues as unused, as `mgpu-rt lower` does: HIP 5.2
    crashes at the launch of a kernel that has these arguments."""
    for texts in pipelines.HIDDEN_QUEUES:
        queue, none = (
            re.sub(rb"\\([0-9A-F]{2})", lambda byte: bytes.fromhex(byte[1].decode()), text)
            for text in texts
        )
        image = image.replace(queue, none)
    return image


@dataclass(frozen=True)
class Csmith:
    """Csmith, unpacked next to the HIP release whose libraries Csmith uses."""

    here: Surroundings
    root: Path

    def write(self, seed: int, source: Path) -> None:
        """Writes the program of a seed to a file."""
        command = [*self.here.prefix(), self.root / "usr/bin/csmith", *OPTIONS]
        _run([*command, "--seed", seed, "--output", source], source.parent)

    @property
    def flags(self) -> list[object]:
        """Returns the flags with which Clang compiles both the kernel and the CPU program."""
        return ["-w", f"-I{_HERE}", f"-I{self.root / 'usr/include/csmith'}"]

    def kernel(self, source: Path, chip: str, level: int) -> Path:
        """Returns the program as a code object with one kernel, `run`."""
        out = source.with_suffix(".co")
        target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-mcode-object-version=4"]
        free = ["-nogpulib", "-ffreestanding", f"-O{level}"]
        _run([CLANG, *target, *free, *self.flags, source, "-o", out], source.parent)
        out.write_bytes(_without_queues(out.read_bytes()))
        return out

    def expected(self, source: Path) -> int:
        """Returns the program's checksum on the CPU. Raises Endless."""
        program = source.with_suffix("")
        _run([CLANG, "-O0", *self.flags, source, "-o", program], source.parent)
        try:
            return int(_run(["sh", "-c", f"ulimit -St {CPU_LIMIT}; exec {program}"], source.parent))
        except subprocess.CalledProcessError as problem:
            if problem.returncode == -signal.SIGXCPU:
                raise Endless from None
            raise


def fetch() -> Csmith:
    """Unpacks Csmith; raises PackagesMissing if Csmith or the compiler is missing."""
    if not shutil.which(CLANG):
        raise packages.PackagesMissing(f"{CLANG} is missing (apt-get install {CLANG})")
    here = surroundings(RELEASES[-1])  # `make test` has this release, too
    root = packages.cache() / "csmith"
    packages.fetch_only(here.release, _PACKAGES, root)
    return Csmith(here, root)


def _run(command: Sequence[object], folder: Path) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
    return done.stdout
