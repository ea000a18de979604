"""The results of every kernel program agree with NumPy. The programs run with AMD's HIP 5.2.3 on an
emulated device."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from softgpu.tests.kernels import (
    algorithms,
    atomics,
    control,
    groups,
    ids,
    mathematics,
    matrix,
    modes,
    private,
)
from softgpu.tests.kernels.compare import mismatch
from softgpu.tests.kernels.host import Host
from softgpu.tests.kernels.program import Module
from tests.support.suites import runs

MODULES = [
    *mathematics.MODULES.values(),
    ids.MODULE,
    ids.PARTIAL,
    groups.MEMORY,
    groups.SHUFFLES,
    groups.REDUCTIONS,
    groups.SUBGROUPS,
    groups.SUBGROUP_SHUFFLES,
    atomics.MODULE,
    private.MODULE,
    control.MODULE,
    algorithms.MODULE,
    matrix.MODULE,
    modes.MODULE,
]
#: Older targets lack f64 atomics, and have other conversions.
OLDER = ["gfx906", "gfx908"]
#: HIP 5.2.3 lacks newer targets. NEWER contains the target for which tests/devices/rocm runs these
#: tests on a newer HIP.
NEWER = [chip for chip in (os.environ.get("MGPU_RT_TEST_CHIP"),) if chip]


def _variants() -> Iterator[tuple[Module, str, str]]:
    """Yields a module, a target, and the suite that runs the pair.

    `make test` runs all modules for gfx90a, every second program of them. `make check` runs the
    others, some without optimisation. `make check-isa` runs all pairs.
    """
    for module in MODULES:
        yield module, "gfx90a", "test"
        if module is not matrix.MODULE:
            yield from ((module, chip, "test") for chip in NEWER)
            for chip in OLDER:
                yield module, chip, "nightly" if module.sample else "check_isa"
        for level in (1, 3) if module is ids.PARTIAL else (0, 1, 3):
            is_often = level == 0 and module.unoptimised
            yield module.at(level), "gfx90a", "check" if is_often else "check_isa"


CASES = [
    pytest.param(
        module,
        name,
        chip,
        id=f"{module.name}-{name}-{chip}",
        marks=()
        if suite == "test" and number % 2 == 0
        else getattr(pytest.mark, suite.replace("test", "check")),
    )
    for module, chip, suite in _variants()
    if suite != "check_isa" or runs("check_isa")
    for number, name in enumerate(module.programs)
]


@pytest.mark.parametrize(("module", "name", "chip"), CASES)
def test_results_equal_those_of_numpy(
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
        if got is None:
            continue
        exact = number not in launch.expected
        expected = given if exact else launch.expected[number]
        wrong = mismatch(got, np.asarray(expected), 0 if exact else launch.ulp,
                         0 if exact else launch.absolute)  # fmt: skip
        assert wrong is None, f"argument {number} of {name}: {wrong}"
    for symbol, expected in launch.symbols_expected.items():
        wrong = mismatch(answer.symbols[symbol], expected, 0)
        assert wrong is None, f"global {symbol} of {name}: {wrong}"
