"""Plays saved cases, and prints the differences.

    python -m tests.proofs.random.play [--device cuda] [--side builtin ...] CASE.json ...

A path of a directory selects all cases in the directory. This module needs only the standard
library. The exit status is 1 if there is a difference. Without --side, each case runs with every
side that supports all programs. `cases.py --side exclusive` writes cases for the sides in
runner.EXCLUSIVE. A side whose runtime is in Python needs the package mgpu_rt.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.proofs.random import runner


def _cases(paths: list[Path]) -> list[Path]:
    found = []
    for path in paths:
        found += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return found


def main() -> int:
    sides = {side.name: side for side in (*runner.ALL, *runner.IN_PYTHON)}
    parser = argparse.ArgumentParser(prog="tests.proofs.random.play", description="play cases")
    parser.add_argument("--device", default="stub", choices=list(runner.DEVICES))
    parser.add_argument("--side", action="append", choices=list(sides))
    parser.add_argument("cases", nargs="+", type=Path)
    options = parser.parse_args()
    chosen = [sides[name] for name in options.side] if options.side else [*runner.SIDES, runner.OFF]
    device, begin = runner.DEVICES[options.device], time.monotonic()
    wrong = programs = 0
    cases = _cases(options.cases)
    for path in cases:
        case = runner.Case.load(path)
        programs += len(case.lines)
        for name, found in runner.problems(case, device, chosen).items():
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
