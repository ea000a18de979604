"""Runs AMD's own tests of the random number library rocRAND on the emulated device, as `make
check-amd` does.

    python -m softgpu.tests.amd.rocrand            # all of it: half an hour
    python -m softgpu.tests.amd.rocrand NAME...    # some programs, such as test_rocrand_basic

Each program has a time limit, because some programs generate gigabytes of numbers. A GPU generates
these numbers in a second; the emulated device is much slower.
"""

from __future__ import annotations

import sys
from pathlib import Path

from softgpu.tests.amd.gtest import Suite, main
from tests.devices.rocm.surroundings import Surroundings


def programs(suite: Suite, _: Surroundings, root: Path) -> dict[str, list[object]]:
    paths = sorted((root / suite.folder).glob("test_*"))
    return {path.name: [path, "--gtest_color=no"] for path in paths}


SUITE = Suite("rocrand", "rocRAND", ("5.7.1", "7.2.4"), ("librocrand1-tests", "librocrand1"), 60,
              programs)  # fmt: skip
load, section = SUITE.load, SUITE.section

if __name__ == "__main__":
    sys.exit(main(SUITE))
