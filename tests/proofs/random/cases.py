"""Writes cases for machines without hypothesis and MLIR.

    python -m tests.proofs.random.cases 1000 build/random_driver/cases [--chip sm_90] [--seed 1]

The images of the chip are written, too. Such a machine needs the directory,
build/random_driver/images and player, build/lib, build/stock, build/cuhip, and
tests/proofs/random/play.py and runner.py:

    tar czf cases.tar.gz $(python -m tests.proofs.random.cases 1000 build/random_driver/cases)

There, in the root of the unpacked files, run: python3 -m tests.proofs.random.play --device cuda
build/random_driver/cases.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from csrc.selftest import images
from tests.proofs.random import programs, runner, script

PROGRAMS = 20  # of a case


def _program(source: random.Random) -> programs.Bytes:
    actions = [source.randbytes(script.ACTION) for _ in range(source.randrange(5, 90))]
    return source.randbytes(4), actions


def write(
    wanted: int,
    directory: Path,
    device: runner.Device,
    seed: int,
    without: Sequence[str] = (),
    ends: int = 0,
) -> list[Path]:
    """Writes cases of that many programs. Every fifth continues at the end of the process, and so
    do `ends` more."""
    paths: list[Path] = []
    source, written = random.Random(seed), 0
    while written < wanted + ends:
        exits = len(paths) % 5 == 4 or written >= wanted
        drawn = [_program(source) for _ in range(1 if exits else PROGRAMS)]
        late, linked = bool(source.randrange(2)), bool(source.randrange(2))
        plan = programs.Plan(device, drawn, (), late, linked, exits, tuple(without))
        paths.append(directory / f"{seed:04}-{len(paths):05}.json")
        plan.case().save(paths[-1])
        written += len(drawn)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.proofs.random.cases", description="write cases")
    parser.add_argument("programs", type=int)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], help="an action left out")
    options = parser.parse_args()
    lowered = images.write(options.chip)
    device = next(d for d in runner.DEVICES.values() if d.chip == options.chip)
    write(options.programs, options.directory.resolve(), device, options.seed, options.without)
    needed = [options.directory.resolve(), lowered, *runner.OUT.glob("player*")]
    needed += [runner.BUILD / name for name in ("lib", "stock", "cuhip")]
    here = Path(__file__).resolve().parent
    needed += [here.parent / "__init__.py"]
    needed += [here / name for name in ("__init__.py", "play.py", "runner.py")]
    print(*(path.relative_to(runner.ROOT) for path in needed))


if __name__ == "__main__":
    main()
