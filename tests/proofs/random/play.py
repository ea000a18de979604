"""Plays saved cases, and prints the differences.

    python -m tests.proofs.random.play [--device cuda] [--side builtin ...] [--workers 16] CASE ...

A path of a directory selects all cases in the directory. This module needs only the standard
library. The exit status is 1 if there is a difference. Without --side, each case runs with every
side that supports all programs. `cases.py --side exclusive` writes cases for the sides in
runner.EXCLUSIVE. A side whose runtime is in Python needs the package mgpu_rt.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.proofs.random import runner


def _cases(paths: list[Path]) -> list[Path]:
    found = []
    for path in paths:
        found += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return found


def _play(
    path: Path, device: runner.Device, sides: Sequence[runner.Side]
) -> tuple[Path, int, dict[str, list[str]]]:
    """Returns the path, the number of programs, and the differences by side."""
    case = runner.Case.read(path.read_text())
    return path, len(case.lines), runner.problems(case, device, sides)


def main() -> int:
    sides = {side.name: side for side in (*runner.ALL, *runner.IN_PYTHON)}
    parser = argparse.ArgumentParser(prog="tests.proofs.random.play", description="play cases")
    parser.add_argument("--device", default="stub", choices=list(runner.DEVICES))
    parser.add_argument("--side", action="append", choices=list(sides))
    parser.add_argument("--workers", type=int, default=1, help="how many cases run at once")
    parser.add_argument("cases", nargs="+", type=Path)
    options = parser.parse_args()
    chosen = [sides[name] for name in options.side] if options.side else [*runner.SIDES, runner.OFF]
    device, begin = runner.DEVICES[options.device], time.monotonic()
    wrong = programs = 0
    cases = _cases(options.cases)
    play = functools.partial(_play, device=device, sides=chosen)
    with multiprocessing.Pool(options.workers) as pool:
        for path, count, problems in pool.imap_unordered(play, cases):
            programs += count
            for name, found in problems.items():
                wrong += 1
                print(f"{path}: {name}:", *found[:12], sep="\n  ", flush=True)
    seconds = time.monotonic() - begin
    print(
        f"{len(cases)} cases of {programs} programs on {device.name}, sides "
        f"{', '.join(side.name for side in chosen)}: {wrong} differ, {seconds:.0f} s"
    )
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
