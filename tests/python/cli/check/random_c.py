"""Runs `mgpu-rt check` on random C programs that Csmith generates; these programs contain no
faults.

    python -m tests.python.cli.check.random_c              # seeds 0 to 1159, a quarter of an hour
    python -m tests.python.cli.check.random_c 17 4711      # some, by their seeds

Each program is one kernel with one work-item (softgpu/tests/csmith). `mgpu-rt check` gets each
program as a recorded launch. test_random_c.py runs a sample.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mgpu_rt.runtime._folder import LaunchFolder
from mgpu_rt.runtime._recorded import Argument, Block, RecordedLaunch
from softgpu.tests.csmith.program import SEEDS, Csmith, Endless, fetch
from tests.python.cli.check.test_check import check
from tests.support.command import NO_FAULT

CHIP = "gfx90a,budget=1000000000"
RIGHT = NO_FAULT.rstrip()
ENDLESS, UNBUILT = "does not end", "was not compiled"
#: seeds of programs that clang 22 miscompiles, with reasons
MISCOMPILED = {
    156: "func_20 overwrites all lanes of v40, where program keeps its return address, and saves "
    "the active ones only",
}


def outcome(csmith: Csmith, seed: int) -> str:
    """Runs check on a program; returns RIGHT, ENDLESS, UNBUILT, or the first line that check
    prints."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, f"seed_{seed}.c")
        try:
            csmith.write(seed, source)
            csmith.expected(source)
            image = csmith.kernel(source, "gfx90a", seed % 4)
        except Endless:
            return ENDLESS
        except subprocess.CalledProcessError:
            return UNBUILT
        done = check(record(image.read_bytes(), Path(scratch, "recording")), MGPU_RT_SOFTGPU=CHIP)
    return done.stderr.splitlines()[0]


def record(image: bytes, out: Path) -> Path:
    """Writes a recording that contains one launch of the kernel `run`. The kernel writes the
    program's checksum into 8 bytes."""
    folder = LaunchFolder(out)
    before = folder.keep(bytes(8))
    launch = RecordedLaunch(
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


def outcomes(seeds: Iterable[int], workers: int = 1) -> dict[int, str]:
    """Returns the outcome of each seed. Raises PackagesMissing."""
    csmith = fetch()
    with ThreadPoolExecutor(workers) as pool:
        return dict(pool.map(lambda seed: (seed, outcome(csmith, seed)), seeds))


def main() -> int:
    found = outcomes([int(word) for word in sys.argv[1:]] or SEEDS, workers=os.cpu_count() or 1)
    for what, count in Counter(found.values()).most_common():
        print(count, what)
    wrong = {seed: what for seed, what in found.items() if what not in (RIGHT, ENDLESS)}
    for seed, what in wrong.items():
        print(f"{seed}: {what} ({MISCOMPILED.get(seed, 'not known')})")
    return int(not set(wrong) <= set(MISCOMPILED))


if __name__ == "__main__":
    sys.exit(main())
