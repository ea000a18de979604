"""Runs each program in bench/programs with each runtime in Python. The output is the same as with
the library."""

from __future__ import annotations

import pytest

from tests.python.runtime.test_hosting import HERE, RUNTIMES
from tests.runtime.programs.test_programs import PRINTED, good, printed, rounds
from tests.support import programs
from tests.support.suites import covering

NAMES = [name for name in PRINTED if name != "spin"]  # the program waits for a GPU's clock
RUNS = covering(((name, 22, runtime) for name in NAMES for runtime in RUNTIMES), strength=1)
RUNS += [
    pytest.param(name, llvm, RUNTIMES[2], marks=pytest.mark.check)
    for name in NAMES
    for llvm in programs.releases(name)
    if llvm != 22
]


@pytest.mark.parametrize(("program", "llvm", "runtime"), RUNS)
def test_a_program_prints_the_same(program: str, llvm: int, runtime: str) -> None:
    outcome = programs.run(
        program,
        llvm,
        programs.ways()["linked"],
        backend="softgpu",
        policy="builtin",
        iterations=rounds(program),
        MGPU_RT_RUNTIME=runtime,
        PYTHONPATH=HERE,
    )
    good(outcome)
    assert outcome.stdout == printed(program, llvm)
