"""Runs kernel programs, including their host code, as executables by `mgpu-rt run --device
softgpu`."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from softgpu.tests.kernels import algorithms, atomics, groups, matrix, private
from softgpu.tests.kernels.compare import mismatch
from softgpu.tests.kernels.program import Module
from tests.runtime.programs.executables import build, printed
from tests.support.command import command
from tests.support.suites import in_check

PROGRAMS: list[tuple[Module, str, int]] = [
    (algorithms.MODULE, "matmul_f32", 22),
    (algorithms.MODULE, "matmul_f64", 19),
    (algorithms.MODULE, "whole_sort", 22),
    (groups.MEMORY, "static_and_dynamic", 22),
    (atomics.MODULE, "tickets_i64", 22),
    (private.MODULE, "called", 22),
    (private.MODULE, "spills", 22),
    (matrix.MODULE, "matmul_i8_16", 22),
]


#: `make check` runs the others.
OFTEN = ("matmul_f64", "whole_sort", "static_and_dynamic", "called")


@pytest.mark.parametrize(
    ("module", "name", "llvm"), in_check(PROGRAMS, lambda _, name, __: name not in OFTEN)
)
def test_executables_give_what_numpy_gives(
    module: Module, name: str, llvm: int, tmp_path: Path
) -> None:
    launch = module.programs[name].data(np.random.default_rng(zlib.crc32(name.encode())))
    executable = build(module, name, launch, llvm, tmp_path)
    result = command("run", "--device", "softgpu", "--", executable, MGPU_RT_HIP="")
    assert result.stderr == ""
    for number, got in printed(launch, result.stdout).items():
        expected = np.asarray(launch.expected[number])
        wrong = mismatch(got, expected, launch.ulp, launch.absolute)
        assert wrong is None, f"argument {number} of {name}: {wrong}"
