"""Runs each lowered program with each runtime in Python. The output is the same as with
the library."""

from __future__ import annotations

import pytest

from tests.python.runtime.test_hosting import HERE, RUNTIMES
from tests.runtime.programs.test_programs import PRINTED, good, printed, rounds
from tests.support import programs
from tests.support.suites import in_check

NAMES = [name for name in PRINTED if name != "spin"]  # the program waits for a GPU's clock
#: `make test` runs a program for each runtime, `make check` each program and release once.
QUICK = ("vecadd", "churn", "forkjoin", "overlap")
RUNS = [
    (name, llvm, RUNTIMES[(number + llvm) % len(RUNTIMES)])
    for number, name in enumerate(sorted(NAMES, key=lambda name: (name not in QUICK, name)))
    for llvm in programs.releases(name)
]


@pytest.mark.parametrize(
    ("program", "llvm", "runtime"),
    in_check(RUNS, lambda program, llvm, _: program not in QUICK or llvm != 22),
)
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
