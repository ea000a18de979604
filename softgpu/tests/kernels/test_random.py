"""Random programs give equal bits on the emulated device and on the host processor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest

from softgpu.tests.kernels.generator import FLOATS, INTEGERS, RandomProgram, generate
from softgpu.tests.kernels.host import Host
from softgpu.tests.kernels.images import image
from softgpu.tests.kernels.processor import Processor, data, for_device, module
from softgpu.tests.kernels.test_kernels import NEWER
from tests.support.suites import runs

#: the number of programs that are lowered together
BATCH = 20
OPERATIONS = 40

Batch = tuple[int, int, str]  # the first seed, the operations of each program, the target

SAMPLE: list[Batch] = [
    (0, OPERATIONS, "gfx90a"),
    (100, OPERATIONS, "gfx906"),
    (200, OPERATIONS, "gfx908"),
    *((300, OPERATIONS, chip) for chip in NEWER),
]
REST: list[Batch] = [
    (first, size, chip)
    for chip, batches in (("gfx90a", 20), ("gfx906", 4), ("gfx908", 4))
    for size in (OPERATIONS, 150)
    for first in range(1000 + size * 1000, 1000 + size * 1000 + batches * BATCH, BATCH)
    if runs("check_isa")
]
BATCHES = [
    *(pytest.param(*batch, marks=pytest.mark.check) for batch in SAMPLE),
    *(pytest.param(*batch, marks=pytest.mark.check_isa) for batch in REST),
]


@lru_cache(maxsize=1)
def programs(first: int, operations: int) -> tuple[list[RandomProgram], Processor]:
    made = [generate(seed, operations) for seed in range(first, first + BATCH)]
    return made, Processor(made)


@pytest.mark.parametrize(("first", "operations", "chip"), BATCHES)
def test_random_programs_equal_numpy(
    first: int, operations: int, chip: str, hosts: Callable[[str], Host]
) -> None:
    made, processor = programs(first, operations)
    device = module(f"random_{first}_{operations}", made)
    code = image(device, chip)
    wrong = []
    for program in made:
        name = f"random_{program.seed}"
        answer = hosts(chip).run(code, name, data(program))
        outputs = answer.arrays[len(INTEGERS) + len(FLOATS) :]
        for kind, got, expected in zip(INTEGERS, outputs, processor.run(program), strict=False):
            assert got is not None
            if not np.array_equal(got, expected):
                at = int(np.argmax(got != expected))
                wrong.append(f"seed {program.seed}, %out_{kind}[{at}]: got {got[at]}, on the "
                             f"processor {expected[at]}\n{for_device(program)}")  # fmt: skip
                break
    assert not wrong, "\n\n".join([f"{len(wrong)} of {len(made)} programs differ", *wrong])
