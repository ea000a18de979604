"""Sees that tests, and others than tests, notice a library that lacks a proof."""

from __future__ import annotations

import importlib
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from mgpu_rt.selftest import bundle, machine, right
from mgpu_rt.selftest.result import Part
from tests.proofs import random_programs
from tests.proofs.table import Test
from tests.support.child import environment, run_child
from tests.support.patience import HANG
from tests.support.variants import control, explorer_without, run_tests

HANGS = "12"  # seconds: where the library hangs, its test fails then
MINUTES = 5.0


def fails(test: Test, proof: str, library: Path) -> None:
    """The test fails with a library without the proof, and passes with one that lacks none."""
    kind, *words = test.name.split()
    if kind == "selftest":
        return selftest(library)
    if kind == "random":
        return random_programs.notice(*words, library)
    if kind == "explore":
        return explore(words, proof)
    file, _, name = test.name.partition("::")
    module = "tests." + file.removesuffix(".py").replace("/", ".")
    function = getattr(importlib.import_module(module), name.partition("[")[0])
    if not hasattr(function, "child"):
        done = run_tests(library, f"tests/{test.name}")
        assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout
        return
    options = {**function.env, "MGPU_RT_PYTHON": "off", "MGPU_RT_TEST_HANG": HANGS}
    if test.exclusive:
        options["MGPU_RT_EXCLUSIVE"] = "on"
    env = environment(function.backend, **options)
    run_child(module, name, {**env, "MGPU_RT_TEST_LIBRARY": str(control())})
    with pytest.raises(AssertionError, match="exit status"):
        run_child(module, name, {**env, "MGPU_RT_TEST_LIBRARY": str(library)})


def explore(words: list[str], proof: str) -> None:
    """The explorer of interleavings finds a state that must not be, in a scenario."""
    with explorer_without(proof) as explorer:
        command = [explorer, *words]
        found = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert found.returncode == 1, found.stdout + found.stderr


def selftest(library: Path) -> None:
    """The selftest notices, on the emulated device."""
    read = bundle.read()
    found = machine.find("softgpu", None, read, library, base=environment("softgpu"))
    until = time.monotonic() + 60 * MINUTES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read.lay_out(read.kernels(found.chip), folder)
        for check in right.checks(read, found, folder):
            parts: list[Part] = []
            right.perform([check], parts, until, lambda text: None, "")
            if parts[0].wrong:
                assert all(wrong.side != "stock" for wrong in parts[0].wrong)
                return
    pytest.fail("nothing was found wrong")
