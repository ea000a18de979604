"""Tests the part of docs/ci.md on LLVM's own integration tests. The lines in docs/ci.md let LLVM's
integration tests run without a GPU. The file twice.mlir is written like one of LLVM's integration
tests."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mgpu_rt._lowering import toolchain
from tests.release.examples.test_ci import PAGE, run

TEST = Path(__file__).with_name("twice.mlir")
LOCAL = re.findall(r"^ {4}(config\..*)$", PAGE, re.MULTILINE)
LINKS = re.findall(r"^ {4}((?:mkdir|ln) .*)$", PAGE, re.MULTILINE)


def lit_configuration(llvm: Path) -> str:
    """Returns the text of a suite's lit.cfg.py. The settings are LLVM's own settings for
    integration tests."""
    return f"""
import os, lit.formats
config.name, config.suffixes, config.test_format = "suite", [".mlir"], lit.formats.ShTest()
config.environment["PATH"] = "{llvm}/bin:" + os.environ["PATH"]
config.substitutions += [
    (r"\\bmlir-runner\\b", "{llvm}/bin/mlir-runner"),
    ("%chip", "gfx90a"),
    ("%mlir_rocm_runtime", "{llvm}/lib/libmlir_rocm_runtime.so"),
    ("%mlir_runner_utils", "{next(llvm.glob("lib/libmlir_runner_utils.so*"))}"),
    ("FileCheck", "filecheck"),
]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Returns the folder of a suite that contains the page's lines. In these lines, a folder of the
    test replaces /tmp/rocm."""
    llvm = toolchain.tool("mlir-opt", 22).resolve().parents[1]
    place = tmp_path / "rocm"
    links = "\n".join(LINKS).replace("/tmp/rocm", str(place))
    subprocess.run(["sh", "-ec", links], check=True)
    folder = tmp_path / "suite"
    folder.mkdir()
    shutil.copy(TEST, folder)
    (folder / "lit.cfg.py").write_text(lit_configuration(llvm))
    (folder / "lit.local.cfg").write_text("\n".join(LOCAL).replace("/tmp/rocm", str(place)))
    return folder


@pytest.mark.check
def test_the_lines_run_a_test_in_llvms_style(suite: Path) -> None:
    assert len(LOCAL) == 2 and len(LINKS) == 3
    done = run(suite, "lit -v .")
    assert "Passed: 1 (100.00%)" in done.stdout, done.stdout + done.stderr
    text = (suite / TEST.name).read_text()
    (suite / TEST.name).write_text(text.replace("CHECK: [0, 2", "CHECK: [0, 3"))
    assert "Failed: 1 (100.00%)" in run(suite, "lit -v . || true").stdout
    (suite / TEST.name).write_text(text)
