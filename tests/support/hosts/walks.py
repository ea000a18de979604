"""Plays the random programs of tests/support/hosts/registered, which register memory, and prints
each fault.

    python -m tests.support.hosts.walks COUNT [--backend cuda] [--seed S]

A process plays 250 programs: each fork of a program copies the page tables of the whole process.
With the stub's record, the page tables grow by 20 KB a program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.child import ROOT, environment
from tests.support.known import program
from tests.support.patience import HANG

SOURCES = ROOT / "tests" / "support" / "hosts" / "registered"
MOST = 250  # programs of a process


def compiled(directory: Path) -> Path:
    """Compiles the program, linked with the library."""
    others = (str(SOURCES / name) for name in ("memory.c", "cases.c"))
    text = (SOURCES / "walk.c").read_text()
    return program(directory, text, "-D_GNU_SOURCE", f"-I{SOURCES}", *others)


def settings(backend: str = "stub", **changes: str) -> dict[str, str]:
    """Returns an environment in which registrations are cached, and the stub keeps pages as a GPU
    does."""
    env = environment(backend, MGPU_RT_EXCLUSIVE="on", MGPU_RT_MANAGER="off", HIPSTUB_PINS="1")
    if backend != "softgpu":  # softgpu finds HIP by itself
        env["LD_LIBRARY_PATH"] = str(Path(env["MGPU_RT_HIP"]).parent)
    return {**env, **changes}


def _played(path: Path, seed: int, count: int, env: dict[str, str]) -> str | None:
    """Plays the programs of several seeds; returns the fault, or None."""
    command = [str(path), "walk", str(seed), str(count)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG)
    except subprocess.TimeoutExpired:
        return f"seeds from {seed}: hung"
    if done.returncode == 0:
        return None
    return f"seeds from {seed}: status {done.returncode}: {done.stderr[-1000:]}"


def failures(path: Path, count: int, env: dict[str, str], seed: int = 1) -> list[str]:
    """Plays `count` programs on all cores; returns the faults."""

    def parts() -> Iterator[tuple[int, int]]:
        for first in range(0, count, MOST):
            yield seed + first, min(MOST, count - first)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        played = pool.map(lambda part: _played(path, *part, env), parts())
        return [wrong for wrong in played if wrong]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.support.hosts.walks", description=__doc__)
    parser.add_argument("programs", type=int)
    parser.add_argument("--backend", default="stub", choices=("stub", "softgpu", "cuda"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        env = settings(options.backend)
        wrong = failures(compiled(Path(directory)), options.programs, env, options.seed)
    seconds = time.monotonic() - begin
    print(f"{options.programs} programs, {seconds:.0f} s, {len(wrong)} failures")
    print("\n".join(wrong[:20]))
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
