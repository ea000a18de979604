"""Checks that tests and other witnesses detect a library that lacks a proof."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import tempfile
from pathlib import Path

import pytest

from tests.proofs.mutants import random_programs
from tests.proofs.mutants.table import Test
from tests.python.selftest import checks
from tests.support.child import ROOT, environment, run_child
from tests.support.hosting import managers
from tests.support.patience import run_process
from tests.support.variants import control, explorer, explorer_without, run_tests

HANGS = "4"  # seconds, after which a test counts as failed because the library hangs


def fails(test: Test, proof: str, library: Path) -> None:
    """Requires that the test fails without the proof, and passes with the complete library."""
    kind, *words = test.name.split()
    if kind == "selftest":
        return selftest(*words, library)
    if kind == "random":
        return random_programs.notice(*words, library)
    if kind == "explore":
        return explore(words, proof)
    file, _, name = test.name.partition("::")
    name, _, case = name.rstrip("]").partition("[")
    module = "tests." + file.removesuffix(".py").replace("/", ".")
    function = getattr(importlib.import_module(module), name)
    home = library.parents[2]
    in_python = (home / "tests").exists()  # python.py
    if in_python or not (hasattr(function, "child") or hasattr(function, "cases")):
        done = run_tests(library, f"tests/{test.name}", home=home if in_python else ROOT)
        end_managers(library)
        assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout
        return
    options = {**function.env, "MGPU_RT_MANAGER": "off"}
    if hasattr(function, "cases"):
        options |= {**function.cases[case], "MGPU_RT_TEST_CASE": case}
    if test.exclusive:
        options["MGPU_RT_EXCLUSIVE"] = "on"
    env = environment(getattr(function, "backend", "stub"), **options)
    run_child(module, name, {**env, "MGPU_RT_TEST_LIBRARY": str(control())})
    without = {"MGPU_RT_TEST_LIBRARY": str(library), "MGPU_RT_TEST_HANG": HANGS}
    with pytest.raises(AssertionError, match="exit status"):
        run_child(module, name, {**env, **without})


def end_managers(library: Path) -> None:
    """Kills the managers that a library without one of its proofs left running."""
    for process in managers(library.parents[2]):
        with contextlib.suppress(ProcessLookupError):  # the process has just ended
            os.kill(process, signal.SIGKILL)


def explore(words: list[str], proof: str) -> None:
    """Requires that the explorer of interleavings finds a forbidden state without the proof. With
    all proofs, it must find none that follows the same first operations."""
    with explorer_without(proof) as mutant:
        found = run_process([mutant, *words])
    begun = re.search(r"^first operations (.+)$", found.stdout, re.MULTILINE)
    assert found.returncode == 1 and begun, found.stdout + found.stderr
    complete = run_process([explorer(), *words, *begun[1].split()])
    assert complete.returncode == 0, complete.stdout + complete.stderr


def selftest(check: str, library: Path) -> None:
    """Requires that a check of the selftest reports a fault on the emulated device."""
    with tempfile.TemporaryDirectory() as folder:
        (found,) = checks.checks_of(library, Path(folder), [check])
        assert checks.calls_wrong(found), check
