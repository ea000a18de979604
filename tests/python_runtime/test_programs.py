"""The programs of bench/programs over each runtime in Python: what they print is the library's."""

from __future__ import annotations

import functools

import pytest

from bench import PROGRAMS
from tests.python_runtime.test_hosting import HERE, RUNTIMES
from tests.support import programs

#: Clusters are NVIDIA's, and spin waits for a GPU's clock.
NAMES = [path.stem for path in PROGRAMS.glob("*.mlir") if path.stem not in ("cluster", "spin")]
RUNS = [(name, 22, runtime) for name in sorted(NAMES) for runtime in RUNTIMES]
RUNS += [
    (name, llvm, RUNTIMES[2])
    for name in sorted(NAMES)
    for llvm in programs.releases(name)
    if llvm != 22
]


@functools.cache
def plain(program: str, llvm: int) -> str:
    """What a program prints over the library by itself."""
    return run(program, llvm, "")


def run(program: str, llvm: int, runtime: str) -> str:
    loops = "%iterations =" in (PROGRAMS / f"{program}.mlir").read_text()
    asked = {"MGPU_RT_RUNTIME": runtime, "PYTHONPATH": HERE} if runtime else {}
    done = programs.run(
        program,
        llvm,
        programs.ways()["linked"],
        backend="softgpu",
        policy="builtin",
        iterations=20 if loops else None,
        **asked,
    )
    assert done.signal == 0, done.stderr
    assert "failed with" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(("program", "llvm", "runtime"), RUNS)
def test_a_program_prints_the_same(program: str, llvm: int, runtime: str) -> None:
    assert run(program, llvm, runtime) == plain(program, llvm)
