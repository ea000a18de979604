"""Runs each kernel on the emulated device and on this GPU, and compares the contents of memory
afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mgpu_rt import _interpreter
from mgpu_rt._cli import softgpu
from mgpu_rt._selftest import children
from mgpu_rt._selftest.bundle import Bundle, library_name
from mgpu_rt._selftest.machine import MEASURE, Machine
from mgpu_rt._selftest.result import EMULATOR, HIP

#: The LLVM releases whose programs diff can compare, because the kernels write to memory that their
#: arguments point to.
LLVMS = ("22", "19")
#: The program whose kernel writes to a module's variable; diff cannot compare such a variable.
WITH_VARIABLES = "globals"
LIMIT = 240.0  # in seconds: both devices run the programs twice if something differs


def commands(bundle: Bundle, machine: Machine, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields, for each LLVM release, a name and the arguments of `mgpu-rt diff` except -o. Yields
    nothing if the GPU is not AMD's, this machine cannot emulate the chip, or NumPy is missing."""
    if machine.kind != "hip" or machine.chip not in softgpu.TARGETS or not _can_compare():
        return
    for llvm in LLVMS:
        library = folder / library_name(llvm)
        names = [name for name in bundle.programs[llvm] if name != WITH_VARIABLES]
        command = [str(MEASURE), "programs", str(library), *names]
        options = ["--device", f"hip,{machine.chip}"]
        yield f"emulator-{llvm}", [*options, "--", *command]


def _can_compare() -> bool:
    from importlib.util import find_spec

    try:
        return bool(softgpu.driver()) and find_spec("numpy") is not None
    except softgpu.SoftGpuUnavailable:
        return False


def compare(words: Sequence[str], machine: Machine) -> tuple[bool, dict[str, list[str]]]:
    """Returns a pair: True if all launches were compared, and the findings for each side."""
    with tempfile.TemporaryDirectory() as out:
        command = _interpreter.module_command("mgpu_rt", "diff", "-o", f"{out}/diff", *words)
        ended = children.run(command, machine.environment, LIMIT)
    found = ended.out.splitlines()[2:]  # after the lines that name both sides
    if ended.status == 0:
        return True, {}
    if ended.status == 1:
        return True, {EMULATOR: [line for line in found if not line.startswith("recorded in")]}
    return False, {HIP: [*found, *ended.err.splitlines()[-2:], ended.how]}
