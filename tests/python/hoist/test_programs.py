"""Hoists programs in LLVM's dialect, and runs the programs with a runtime that calls HIP at every
call. A hoisted program prints the same results as the original program, and calls the driver only
once for each hoisted object."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.runtime.programs.test_programs import (
    LAUNCHES,
    LEAKING,
    PRINTED,
    good,
    printed,
    rounds,
)
from tests.support import lower
from tests.support.child import library
from tests.support.hoisted import RELEASES, build, dialect, hoist
from tests.support.printing import print_library
from tests.support.programs import STOCK, Outcome, Way, execute, run_environment
from tests.support.suites import in_check

PROGRAMS = [(name, llvm) for name in PRINTED for llvm in RELEASES]
#: one program for each release; `make check` runs the others, `make nightly` on softgpu
SAMPLE = (("forum", 22), ("churn", 19))
OFTEN = in_check(PROGRAMS, lambda *program: program not in SAMPLE)
#: for each program: launches per iteration of the program's loop; numbers of modules, kernels and
#: streams
COUNTED = [("forum", 1, 1, 1, 1), ("many", 50, 5, 50, 1), ("overlap", 2, 1, 1, 2)]


def run(program: str, llvm: int, iterations: int | None, backend: str = "stub") -> Outcome:
    hoisted = hoist(dialect(program, llvm, iterations), llvm)
    env = run_environment(Way(STOCK), backend, llvm, "builtin")
    if backend != "stub":  # the place where stock finds HIP
        env["LD_LIBRARY_PATH"] += os.pathsep + str(Path(env["MGPU_RT_HIP"]).parent)
    return execute([str(build(hoisted.program, llvm))], env)


@pytest.mark.parametrize(
    ("program", "llvm", "backend"),
    [
        *in_check(((*run, "stub") for run in PROGRAMS), lambda *run: run[:2] not in SAMPLE),
        *(
            pytest.param(
                *run, "softgpu", marks=pytest.mark.check if run in SAMPLE else pytest.mark.nightly
            )
            for run in PROGRAMS
        ),
    ],
)
def test_results_are_the_same(program: str, llvm: int, backend: str) -> None:
    outcome = run(program, llvm, rounds(program), backend)
    good(outcome)
    assert outcome.stdout == printed(program, llvm)


@pytest.mark.check
@pytest.mark.parametrize("program", ["churn", "globals", "overlap"])
@pytest.mark.parametrize("llvm", RELEASES)
def test_results_are_the_same_over_the_library(program: str, llvm: int) -> None:
    hoisted = hoist(dialect(program, llvm, rounds(program)), llvm)
    env = run_environment(Way(STOCK, preload=library()), "stub", llvm, "builtin")
    outcome = execute([str(build(hoisted.program, llvm))], env)
    good(outcome)
    assert outcome.stdout == printed(program, llvm)


@pytest.mark.parametrize("llvm", in_check(RELEASES, lambda llvm: llvm < 22))
@pytest.mark.parametrize(("program", "launches", "modules", "kernels", "streams"), COUNTED)
def test_the_driver_is_asked_once(
    program: str, launches: int, modules: int, kernels: int, streams: int, llvm: int
) -> None:
    iterations = LAUNCHES // launches
    outcome = run(program, llvm, iterations)
    good(outcome)
    calls = Counter(call["name"] for call in outcome.calls)
    assert calls["hipModuleLaunchKernel"] == launches * iterations
    assert calls["hipModuleLoadData"] == calls["hipModuleUnload"] == modules
    assert calls["hipModuleGetFunction"] == kernels
    assert calls["hipStreamCreate"] == calls["hipStreamDestroy"] == streams


@pytest.mark.parametrize(
    "program",
    in_check(
        [name for name in PRINTED if name != "globals"],
        lambda name: name not in ("forum", "overlap"),
    ),
)
def test_kept_objects_go_back_before_hip_is_gone(program: str) -> None:
    """LLVM 19 generates no destructor, so the hoisting adds code that releases the objects."""
    hoisted = hoist(dialect(program, 19, rounds(program)), 19)
    env = run_environment(Way(STOCK), "stub", 19, "builtin", HIPSTUB_TEARDOWN="1")
    outcome = execute([str(build(hoisted.program, 19))], env)
    good(outcome)
    calls = Counter(call["name"] for call in outcome.calls)
    assert calls["hipModuleLoadData"] == calls["hipModuleUnload"]
    if program not in LEAKING:
        assert calls["hipStreamCreate"] == calls["hipStreamDestroy"]


@pytest.mark.parametrize(("program", "llvm"), OFTEN)
def test_hoisting_twice_is_hoisting_once(program: str, llvm: int) -> None:
    once = hoist(dialect(program, llvm, rounds(program)), llvm)
    assert hoist(once.program, llvm).program == once.program
    assert (once.program == dialect(program, llvm, rounds(program))) == (program == "events")


@pytest.mark.check
@pytest.mark.parametrize("program", ["forum", "churn", "samename"])
@pytest.mark.parametrize("llvm", RELEASES)
def test_the_jit_takes_it(llvm: int, program: str, tmp_path: Path) -> None:
    text = tmp_path / "program.mlir"
    text.write_bytes(hoist(dialect(program, llvm, 7), llvm).program)
    shared = f"--shared-libs={STOCK},{print_library()}"
    command = [str(lower.runner(llvm)), str(text), "-e", "main", "--entry-point-result=void"]
    outcome = execute([*command, shared], run_environment(Way(STOCK), "stub", llvm, "builtin"))
    good(outcome)
    assert outcome.stdout == printed(program, llvm)
    calls = Counter(call["name"] for call in outcome.calls)
    assert (
        calls["hipModuleLoadData"]
        == calls["hipModuleUnload"]
        == (2 if program == "samename" else 1)
    )
    assert calls["hipStreamCreate"] == calls["hipStreamDestroy"] == 1
