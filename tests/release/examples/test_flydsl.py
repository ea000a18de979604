"""Checks the table of FlyDSL's functions, and runs the example if FlyDSL is installed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from mgpu_rt import _abi
from mgpu_rt._lowering import toolchain
from tests.devices.rocm import packages
from tests.devices.rocm.releases import RELEASES
from tests.devices.rocm.surroundings import Surroundings
from tests.release.examples.conftest import EXAMPLES
from tests.support.child import ROOT
from tests.support.patience import run_process

#: The exports of FlyDSL 0.5.0's libfly_jit_runtime.so (nm -D).
NEEDED = Path(__file__).with_name("flydsl-0.5.0.txt").read_text(encoding="utf-8").split()
PAGE = (ROOT / "docs" / "jit.md").read_text(encoding="utf-8")
SCALE = EXAMPLES / "flydsl" / "scale.py"


def test_the_table_names_present_and_missing_functions() -> None:
    said = {}
    for names, answer in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (yes|no)\b", PAGE, re.MULTILINE):
        said |= dict.fromkeys(re.findall(r"\w+", names), answer == "yes")
    here = {function.name for function in _abi.functions()}
    assert said.keys() <= set(NEEDED)
    # The table's first row names kinds of functions in place of names.
    assert {name: name in here for name in NEEDED} == dict.fromkeys(NEEDED, True) | said


def test_the_example_serves_flydsl(tmp_path: Path) -> None:
    python = os.environ.get("MGPU_RT_TEST_FLYDSL")
    if not python:
        pytest.skip("MGPU_RT_TEST_FLYDSL names no Python that has FlyDSL")
    (release,) = (release for release in RELEASES if release.hip == "7.2.4")
    root = packages.fetched(release)
    if not root:
        pytest.skip("HIP 7.2.4 was not fetched: make check-rocm")
    (tmp_path / "llvm").symlink_to(toolchain.tool("ld.lld", 22).parent.parent)
    hip = Surroundings(release, root)
    env = {**os.environ, "MGPU_RT_SOFTGPU": "gfx942", "FLYDSL_GPU_ARCH": "gfx942"}
    env |= {"ROCM_PATH": str(tmp_path), "FLYDSL_RUNTIME_ENABLE_CACHE": "0", "PYTHONPATH": str(ROOT)}
    result = run_process(
        [*hip.prefix(), python, SCALE], hip.environment({**env, "MGPU_RT_MANAGER": "off"})
    )
    promised = re.search(r"Prints:\n\n((?:    .*\n)+)", SCALE.read_text(encoding="utf-8"))
    assert promised
    assert result.returncode == 0, result.stderr
    printed = result.stdout.splitlines()
    assert [line.strip() for line in promised[1].splitlines()] == [
        line for line in printed if "Dtif" not in line and "DTIF" not in line and "dtif" not in line
    ]
