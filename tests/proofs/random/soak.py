"""Runs the whole random driver: many programs on every device of this machine, on all cores.

    python -m tests.proofs.random.soak 20000 [--minutes M] [--seed S] [--device NAME]
    python -m tests.proofs.random.soak --shrink SEED        makes the failure of a seed small

A run on all devices, without options, writes the table of tests/proofs/README.md; any other run
prints it. The exit status is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import multiprocessing
import os
import sys
import time
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tests.devices.rocm import packages, releases
from tests.proofs.programs import images
from tests.proofs.random import programs, runner

PAGE = runner.ROOT / "tests" / "proofs" / "README.md"
BEGIN, END = "<!-- table soak -->\n", "<!-- end -->"
EXAMPLES = 10  # number of cases for a seed

#: The devices on which 22 successive seeds run. If the flag is true, the programs continue while
#: the process exits.
Share = tuple[runner.Device, bool]
SHARES: tuple[Share, ...] = (
    *((runner.STUB, False),) * 3,
    *((runner.REUSE, False),) * 3,
    *((runner.HELD, False),) * 2,
    *((runner.SMALL, False),) * 2,
    *((runner.TWO, False),) * 2,
    (runner.PINS, False),
    (runner.SOFTGPU, False),
    (runner.SOFTGPU_TWO, False),
    (runner.SOFTGPU_5, False),
    (runner.SOFTGPU_6, False),
    (runner.SOFTGPU_7, False),
    (runner.SOFTGPU_7_TWO, False),
    (runner.STUB, True),
    (runner.TWO, True),
    (runner.SOFTGPU, True),
)


def _had_here(name: str) -> tuple[Share, ...]:
    """Returns the elements of SHARES on the device of this name; "" selects all devices. Omits
    devices whose HIP release is missing and cannot be downloaded."""
    missing, shares = set(), [share for share in SHARES if name in ("", share[0].name)]
    for device in {device for device, _ in shares if device.release}:
        try:
            packages.fetch(releases.find(device.release))
        except packages.PackagesMissing as reason:
            print(f"{device.name} is left out: {reason}", flush=True)
            missing.add(device)
    return tuple(share for share in shares if share[0] not in missing)


def _play_seed(
    number: int,
    shrink: bool = False,
    without: tuple[str, ...] = (),
    sides: tuple[runner.Side, ...] = runner.ALL,
    shares: tuple[Share, ...] = SHARES,
) -> dict:
    """Plays cases of one seed until a case fails; returns this seed's entry for the results
    file."""
    device, exits = shares[number % len(shares)]
    counts: Counter[str] = Counter()
    errors: list[str] = []
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @seed(number)
    @settings(
        max_examples=EXAMPLES * (4 if exits else 1),
        database=None,
        deadline=None,
        suppress_health_check=quiet,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
    )
    @given(st.data())
    def play(data) -> None:
        plan = data.draw(programs.plans(device, sides=sides, exits=exits, without=without))
        try:
            count = programs.check(plan)
        except programs.Wrong as wrong:
            errors.append(str(wrong))
            raise
        counts["cases" if count else "undecided"] += 1
        counts["programs"] += count

    error = None
    try:
        play()
    except programs.Wrong as wrong:
        error = str(wrong)
    except Flaky:
        error = "Not each time: " + errors[0]
    if error:
        error = error.replace(f"{runner.ROOT}/", "")
    return {"seed": number, "device": device.name, "exits": exits, "error": error, **counts}


def _add(total: dict[str, Counter], one: dict) -> None:
    name = one["device"] + (", to the process's end" if one["exits"] else "")
    counts = total.setdefault(name, Counter())
    counts["failures"] += one["error"] is not None
    for key in ("cases", "programs", "undecided"):
        counts[key] += one.get(key, 0)


def soak(
    wanted: int,
    first: int,
    minutes: float,
    without: tuple[str, ...] = (),
    sides: tuple[runner.Side, ...] = runner.ALL,
    device: str = "",
) -> tuple[str, bool]:
    """Plays successive seeds, beginning with `first`, until the wanted number of programs has run.
    Returns the table of the results, and whether a program failed."""
    begin, total, last = time.monotonic(), {}, first
    shares = _had_here(device)
    play = functools.partial(_play_seed, without=without, sides=sides, shares=shares)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for one in pool.imap_unordered(play, range(first, sys.maxsize)):
            _add(total, one)
            last = max(last, one["seed"])
            if one["error"]:
                print(f"seed {one['seed']}, {one['device']}:", one["error"][:2000], flush=True)
            played = sum(counts["programs"] for counts in total.values())
            seconds = time.monotonic() - begin
            if one["seed"] % 20 == 0:
                print(f"{played} programs, {seconds:.0f} s", flush=True)
            if played >= wanted or seconds > 60 * minutes:
                pool.terminate()
                break
    took = int(time.monotonic() - begin) // 60
    title = f"{datetime.date.today()}, {played:,} programs in {took} minutes on "
    title += f"{os.cpu_count()} cores, seeds {first} to {last}:\n"
    return table(title, total), any(counts["failures"] for counts in total.values())


def table(title: str, total: dict[str, Counter]) -> str:
    """Returns the results as a table of the page."""
    lines = [
        title,
        "| device | processes | programs | undecided | failures |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, counts in sorted(total.items()):
        row = [counts[kind] for kind in ("cases", "programs", "undecided", "failures")]
        lines.append(f"| {name} | " + " | ".join(f"{number:,}" for number in row) + " |")
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.proofs.random.soak", description=__doc__)
    parser.add_argument("programs", type=int, nargs="?", default=27_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--device", default="", help="the only device, such as 'softgpu 6.4.3'")
    parser.add_argument("--without", action="append", default=[], help="an action left out")
    parser.add_argument("--python", action="store_true", help="runtimes in Python alone")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    options = parser.parse_args()
    images.write("gfx90a")
    sides = runner.IN_PYTHON if options.python else runner.ALL
    if options.shrink is not None:
        one = _play_seed(options.shrink, shrink=True, without=tuple(options.without), sides=sides)
        print(one["error"] or "nothing differs")
        return one["error"] is not None
    without, device = tuple(options.without), options.device
    shown, failed = soak(options.programs, options.seed, options.minutes, without, sides, device)
    if without or device or options.python:
        print(shown)
    else:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + shown + END + rest.partition(END)[2])
    return failed


if __name__ == "__main__":
    sys.exit(main())
