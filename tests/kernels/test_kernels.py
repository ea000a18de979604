"""Every kernel program gives what NumPy gives, on AMD's HIP 5.2.3 over an emulated device."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.kernels import (
    algorithms,
    atomics,
    casts,
    control,
    floats,
    groups,
    ids,
    integers,
    mathematics,
    matrix,
    numerics,
    private,
    vectors,
)
from tests.kernels.compare import mismatch
from tests.kernels.host import Host
from tests.kernels.program import Module

MODULES = [
    floats.MODULE,
    floats.BF16,
    integers.MODULE,
    integers.DIVISION,
    integers.UNOPTIMISED,
    casts.MODULE,
    *mathematics.MODULES.values(),
    ids.MODULE,
    groups.MEMORY,
    groups.SHUFFLES,
    groups.REDUCTIONS,
    groups.SUBGROUPS,
    groups.SUBGROUP_SHUFFLES,
    atomics.MODULE,
    private.MODULE,
    control.MODULE,
    vectors.MODULE,
    algorithms.MODULE,
    numerics.MODULE,
    matrix.MODULE,
    matrix.FIRST,
]
CASES = [
    pytest.param(module, name, "gfx90a", id=f"{module.name}-{name}-gfx90a")
    for module in MODULES
    for name in module.programs
]


@pytest.mark.parametrize(("module", "name", "chip"), CASES)
def test_results_are_those_of_numpy(
    module: Module,
    name: str,
    chip: str,
    images: Callable[[Module, str], Path],
    hosts: Callable[[str], Host],
) -> None:
    program = module.programs[name]
    launch = program.data(np.random.default_rng(zlib.crc32(name.encode())))
    answer = hosts(chip).run(images(module, chip), program.kernel, launch)
    for number, (given, got) in enumerate(zip(launch.arguments, answer.arrays, strict=True)):
        if got is None or number in launch.scratch:
            continue
        exact = number not in launch.expected
        expected = given if exact else launch.expected[number]
        if number in launch.unordered:
            got = np.sort(got)
        wrong = mismatch(got, np.asarray(expected), 0 if exact else launch.ulp,
                         0 if exact else launch.absolute)  # fmt: skip
        assert wrong is None, f"argument {number} of {name}: {wrong}"
    for symbol, expected in launch.symbols_expected.items():
        wrong = mismatch(answer.symbols[symbol], expected, 0)
        assert wrong is None, f"global {symbol} of {name}: {wrong}"
