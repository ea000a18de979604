"""Builds the C programs for measurements, and finds the libraries that they measure.

Each program contains the forum's code object in its read-only data, as a lowered program does, and
prints JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import PROGRAMS
from mgpu_rt._lowering import pipelines, toolchain
from tests.support import lower

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "bench" / "native"
OUT = ROOT / "build" / "bench"
RUNTIME = ROOT / "build" / "lib" / "libmlir_rocm_runtime.so"
STOCK = ROOT / "build" / "stock" / "libmlir_rocm_runtime.so"
BY_HAND = ROOT / "build" / "stock" / "byhand" / "libmlir_rocm_runtime.so"  # for models only
STUB = ROOT / "build" / "hipstub" / "libamdhip64.so.5"

KERNEL = "test_func"

MEASURING = ("calls", "hoisted")
HEADERS = ("forum.h", "hip.h", "native.h", "rounds.h", "runtime.h")
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Wpedantic"]


class Failed(RuntimeError):
    """Raised if a file that a benchmark needs is missing or fails; the message names the file."""


def need(*libraries: Path) -> None:
    """Raises Failed if a library was not built."""
    for library in libraries:
        if not library.exists():
            raise Failed(f"{library} is missing: `make all stock test-libraries` builds it")


def program(name: str, chip: str = pipelines.DEFAULT_CHIP, folder: Path = SOURCES) -> Path:
    """Compiles ``<name>.c`` of ``folder`` if the result is older than its sources, and returns the
    result's path.

    The program contains the forum's code object for ``chip``. Without a compiler, returns an
    existing file unchanged.
    """
    image_file = image(chip)
    result = OUT / chip / name
    if result.exists() and shutil.which("cc") is None:
        return result
    sources = [folder / f"{name}.c", *(SOURCES / file for file in HEADERS), Path(__file__)]
    newest = max(path.stat().st_mtime for path in [*sources, image_file])
    if result.exists() and result.stat().st_mtime > newest:
        return result
    macros = [f"-I{ROOT}", f'-DIMAGE_FILE="{image_file}"', f'-DKERNEL="{KERNEL}"']
    compile_c([*FLAGS, *macros, sources[0], "-ldl", "-pthread"], result)
    return result


def compile_c(arguments: Sequence[object], result: Path) -> None:
    """Runs the C compiler; the new file replaces the old one in one step, because another process
    may be running the old file."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Failed("cc is missing: apt-get install gcc libc6-dev")
    scratch = result.with_name(f"{result.name}.{os.getpid()}")
    run([compiler, *arguments, "-o", scratch])
    scratch.replace(result)


def image(chip: str, name: str = "forum") -> Path:
    """Returns the code object of a program of bench/programs as a file."""
    path = OUT / chip / f"{name}.image"
    try:
        content = lower.code_object(PROGRAMS / f"{name}.mlir", chip)
    except toolchain.ToolchainMissing:
        if path.exists():
            return path
        raise
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
    return path


def plain_environment() -> dict[str, str]:
    """Returns this process's environment without options that would affect the measurement."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MGPU_RT_", "HIPSTUB_", "LD_"))
    }


def stub_environment(**variables: str) -> dict[str, str]:
    """Returns an environment in which programs use the stub instead of HIP."""
    on_stub = {"LD_LIBRARY_PATH": str(STUB.parent), "MGPU_RT_HIP": str(STUB)}
    return plain_environment() | on_stub | variables


def run(
    command: Sequence[object],
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> str:
    """Runs a program for at most ``timeout`` seconds; returns its output. Raises Failed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {timeout} s: {' '.join(words)}") from None
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}: {' '.join(words)}\n{done.stderr.strip()}")
    return done.stdout


def run_json(command: Sequence[object], env: Mapping[str, str] | None = None) -> Any:
    """Runs a program as run() does; returns the JSON that it printed."""
    return json.loads(run(command, env))
