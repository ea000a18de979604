"""Writes cases that machines without hypothesis and MLIR can run.

    python -m tests.proofs.random.cases 1000 build/random_driver/cases [--device "stub, reuse"]
        [--seed 1] [--side exclusive]

The command also writes the images for the device's chip. To play cases on a machine without
hypothesis, copy the files that the command prints: cases, images, players, libraries, and Python
modules.

    tar czf cases.tar.gz $(python -m tests.proofs.random.cases 1000 build/random_driver/cases)

On the machine without hypothesis, enter the root of the unpacked files and run python3 -m
tests.proofs.random.play --device cuda build/random_driver/cases.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from tests.proofs.programs import images
from tests.proofs.random import programs, runner, script

PROGRAMS = 20  # programs of a case
#: The modules that play.py imports, as paths relative to the repository's root.
MODULES = (
    *("mgpu_rt/__init__.py", "mgpu_rt/_selftest/__init__.py"),
    *("mgpu_rt/_cli/child.py", "mgpu_rt/_selftest/sequences.py"),
    *("tests/__init__.py", "tests/support/__init__.py", "tests/support/patience.py"),
    *("tests/proofs/__init__.py", "tests/proofs/random/__init__.py"),
    *("tests/proofs/random/play.py", "tests/proofs/random/runner.py"),
)


def program(source: random.Random, actions: int) -> programs.Bytes:
    """Returns a random program with a number of actions."""
    drawn = [source.randbytes(script.ACTION) for _ in range(actions)]
    return source.randbytes(4), drawn


def write(
    wanted: int,
    directory: Path,
    device: runner.Device,
    seed: int,
    without: Sequence[str] = (),
    ends: int = 0,
) -> list[Path]:
    """Writes cases with the given number of programs. In every fifth case, and in `ends` additional
    cases, the program continues while the process exits."""
    paths: list[Path] = []
    source, written = random.Random(seed), 0
    while written < wanted + ends:
        exits = len(paths) % 5 == 4 or written >= wanted
        number = 1 if exits else PROGRAMS
        drawn = [program(source, source.randrange(5, 90)) for _ in range(number)]
        late, linked = bool(source.randrange(2)), bool(source.randrange(2))
        plan = programs.Plan(device, drawn, (), late, linked, exits, tuple(without))
        paths.append(directory / f"{seed:04}-{len(paths):05}.json")
        programs.runner.save(plan.case(), paths[-1])
        written += len(drawn)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.proofs.random.cases", description="write cases")
    parser.add_argument("programs", type=int)
    parser.add_argument("directory", type=Path)
    devices = {device.name: device for device in runner.DEVICES.values() if not device.release}
    parser.add_argument("--device", default="cuda", choices=list(devices))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], help="an action left out")
    sides = {side.name: side for side in runner.ALL}
    parser.add_argument("--side", choices=list(sides), help="leave out the actions that it lacks")
    options = parser.parse_args()
    without = [*options.without, *(sides[options.side].lacks if options.side else ())]
    device = devices[options.device]
    lowered = images.write(device.chip)
    write(options.programs, options.directory.resolve(), device, options.seed, without)
    needed = [options.directory.resolve(), lowered, *runner.OUT.glob("player*")]
    needed += [runner.OUT / "bodies.so", runner.BUILD / "lib", runner.BUILD / "stock"]
    needed += [runner.ROOT / path for path in device.path if not Path(path).is_absolute()]
    needed += [runner.ROOT / name for name in MODULES]
    print(*(path.relative_to(runner.ROOT) for path in needed))


if __name__ == "__main__":
    main()
