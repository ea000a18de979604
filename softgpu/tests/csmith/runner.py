"""Runs programs on the device; each process runs programs for one chip and one release."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softgpu.tests.csmith.program import Csmith, Endless
from softgpu.tests.kernels.host import DeviceFailed, Host
from softgpu.tests.kernels.program import Launch
from tests.devices.rocm.surroundings import Surroundings, without_chatter

CHIPS = ("gfx90a", "gfx942")
#: The HIP release for each level of optimisation, -O0 to -O3. HIP 5.7.1 allocates only 16 KiB of
#: stack for a recursive kernel; some unoptimised programs need more.
HIPS = ("7.2.4", "5.7.1", "7.2.4", "5.7.1")
RIGHT, WRONG, FAILED, ENDLESS = "right", "wrong", "failed", "endless"
BUDGET = 300_000_000  # instructions after which a kernel is stopped: ten seconds of a core
BATCH = 40

Outcome = tuple[str, str]  # one of the four outcomes; its message


@dataclass(frozen=True)
class Machine:
    """A chip with a HIP release."""

    here: Surroundings
    chip: str


class ReleasesHost(Host):
    """A process that runs softgpu.tests.kernels.hip on a HIP release."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(f"{machine.chip},budget={BUDGET}")
        self.here = machine.here

    def start(
        self, command: list[str], base: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        environment = self.here.environment(base)
        return self.here.command(command, environment.pop("LD_LIBRARY_PATH", "")), environment


def place(seed: int) -> tuple[str, str, int]:
    """Returns the HIP release, the chip and the optimisation level for a seed."""
    level = seed % len(HIPS)
    return HIPS[level], CHIPS[seed // len(HIPS) % len(CHIPS)], level


def run(csmith: Csmith, machine: Machine, seeds: Sequence[int]) -> dict[int, Outcome]:
    """Returns the outcome of each seed. Compiles all programs of a batch before the first program
    runs, because the spinning of ROCr 7 would slow the compiler."""
    outcomes: dict[int, Outcome] = {}
    for first in range(0, len(seeds), BATCH):
        with tempfile.TemporaryDirectory() as scratch:
            batch = seeds[first : first + BATCH]
            made = {seed: prepare(csmith, machine.chip, seed, Path(scratch)) for seed in batch}
            outcomes |= launch(machine, made)
    return outcomes


def launch(machine: Machine, made: Mapping[int, Prepared | Outcome]) -> dict[int, Outcome]:
    """Returns the outcome of each prepared program."""
    host = ReleasesHost(machine)
    try:
        return {
            seed: one if isinstance(one, tuple) else _launch(host, one)
            for seed, one in made.items()
        }
    finally:
        host.close()


@dataclass(frozen=True)
class Prepared:
    """A compiled program, and its checksum on the CPU."""

    image: Path
    expected: int


def prepare(csmith: Csmith, chip: str, seed: int, folder: Path) -> Prepared | Outcome:
    source = folder / f"seed_{seed}.c"
    try:
        csmith.write(seed, source)
        expected = csmith.expected(source)
        return Prepared(csmith.kernel(source, chip, place(seed)[2]), expected)
    except Endless:
        return ENDLESS, ""
    except subprocess.CalledProcessError as problem:
        return FAILED, f"{problem.cmd[0]}: {problem.stderr.strip()[:200]}"


def _launch(host: Host, made: Prepared) -> Outcome:
    launch = Launch([np.zeros(1, np.uint64)], {}, block=(1,))
    try:
        answer = host.run(made.image, "run", launch)
    except DeviceFailed as problem:
        return FAILED, _first_words(str(problem))
    assert answer.arrays[0] is not None
    got = int(answer.arrays[0][0])
    same = got == made.expected
    return (RIGHT, "") if same else (WRONG, f"{got:#018x} for {made.expected:#018x}")


def _first_words(text: str) -> str:
    """Returns the device's message about a kernel, or HIP's first line if the device printed no
    message."""
    said = [line for line in without_chatter(text).splitlines() if line.strip()]
    return next((line for line in said if line.startswith("softgpu: ")), said[0])[:300]
