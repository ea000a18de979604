"""Random C programs that Csmith generates have no faults, and `mgpu-rt check` reports none.

`make nightly` checks eight programs. `RANDOM_C=1160 pytest -m nightly` with this file checks all,
in a quarter of an hour.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mgpu_rt._recordings.folder import LaunchFolder
from mgpu_rt._recordings.launches import Argument, Block, RecordedLaunch
from softgpu.tests.csmith.program import Csmith, Endless, fetch
from tests.devices.rocm.packages import PackagesMissing
from tests.python.cli.check.test_check import check
from tests.support.command import COMMAND, NO_FAULT

CHIP = "gfx90a,budget=1000000000"
#: Seeds of programs that clang 22 miscompiles. In program 156, func_20 overwrites all lanes of v40,
#: where program keeps its return address, and saves the active ones only.
MISCOMPILED = (156,)


def fault(csmith: Csmith, seed: int, folder: Path) -> str:
    """Runs check on a program, which is one kernel with one work-item (softgpu/tests/csmith).
    Returns the first line that check prints, or nothing if the program has no fault or no end."""
    source = folder / f"seed_{seed}.c"
    try:
        csmith.write(seed, source)
        csmith.expected(source)
        image = csmith.kernel(source, "gfx90a", seed % 4)
    except Endless:
        return ""
    except subprocess.CalledProcessError:
        return "it was not compiled"
    recording = record(image.read_bytes(), folder / str(seed))
    said = check("--", COMMAND, "replay", recording, MGPU_RT_SOFTGPU=CHIP).stderr
    return "" if said == NO_FAULT else said.splitlines()[0]


def record(image: bytes, out: Path) -> Path:
    """Writes a recording that contains one launch of the kernel `run`. The kernel writes the
    program's checksum into 8 bytes."""
    folder = LaunchFolder(out)
    before = folder.keep(bytes(8))
    launch = RecordedLaunch(
        module="",
        kernel="run",
        label="run",
        image=folder.keep(image),
        grid=(1, 1, 1),
        block=(1, 1, 1),
        shared=0,
        arguments=(Argument(bytes(8), 0),),
        blocks=(Block(4096, 8, before, before),),
    )
    folder.finish(launch.as_json())
    return out


@pytest.mark.nightly
def test_random_c_programs_have_no_fault(tmp_path: Path) -> None:
    try:
        csmith = fetch()
    except PackagesMissing as reason:
        pytest.skip(str(reason))
    seeds = [n for n in range(int(os.environ.get("RANDOM_C", "8"))) if n not in MISCOMPILED]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda seed: fault(csmith, seed, tmp_path), seeds)
        assert {seed: what for seed, what in zip(seeds, found, strict=True) if what} == {}
