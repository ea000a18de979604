"""Runs small C programs on AMD's HIP on the software device."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.support import lower
from tests.support.patience import HANG, run_process

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).resolve().parent / "programs"
KERNELS = PROGRAMS / "kernels.mlir"
CANNOT_RUN = 77  # a program's exit status

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def driver() -> Path:
    """Returns the path of the driver library."""
    return softgpu.driver()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles a test program once."""
    directory = tmp_path_factory.mktemp("programs")

    def build(name: str) -> Path:
        program = directory / name
        if not program.exists():
            flags = ["-O1", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
            source = PROGRAMS / f"{name}.c"
            subprocess.run(["cc", *flags, "-o", program, source, "-ldl"], check=True, timeout=HANG)
        return program

    return build


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that stores the code object of kernels.mlir for a target in a file, and
    returns the file's path."""
    directory = tmp_path_factory.mktemp("kernels")

    def build(chip: str) -> Path:
        image = directory / f"{chip}.co"
        if not image.exists():
            image.write_bytes(lower.code_object(KERNELS, chip))
        return image

    return build


@pytest.fixture
def alone(driver: Path, compiled: Callable[[str], Path]) -> Callable[..., list[str]]:
    """Runs a program directly on the driver library, without HIP; returns the words that the
    program printed."""

    def start(program: str, chip: str, *arguments: object) -> list[str]:
        done = run_process(
            [compiled(program), *map(str, arguments)],
            softgpu.environment({**os.environ, "MGPU_RT_SOFTGPU": chip}),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split()

    return start


@pytest.fixture
def run(driver: Path, compiled: Callable[[str], Path], kernels: Callable[[str], Path]) -> Run:
    """Runs one case of a program on the device; skips the test if the program exits with
    CANNOT_RUN."""

    def start(
        program: str, case: str, *, chip: str = "gfx90a", variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        base = {name: value for name, value in os.environ.items() if not name.startswith("HSA_")}
        environment = softgpu.environment({**base, "MGPU_RT_SOFTGPU": chip})
        done = run_process(
            [compiled(program), case, kernels(chip)], {**environment, **(variables or {})}
        )
        if done.returncode == CANNOT_RUN:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        return done

    return start
