"""Runs a whole selftest: its steps in order, and each step's share of the time."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import __version__
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._selftest import bundle, fast, machine, right
from mgpu_rt._selftest.result import YES, Result

#: `TIMING` is the share of the selftest's time that the timing gets. `LEAST_TIMING` is the least
#: time for the timing, in seconds.
TIMING, LEAST_TIMING = 0.25, 10.0
TIME = "time"
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Request:
    """The options that the user has requested."""

    device: str = "auto"
    gpu: int | None = None
    minutes: float = 5.0
    harsh: bool = False
    only: tuple[str, ...] = ()
    library: Path | None = None  # replaces this installation's

    @property
    def checks(self) -> bool:
        """Returns False if the user requested only the timing."""
        return set(self.only) != {TIME}

    @property
    def command(self) -> str:
        """Returns the beginning of the command that repeats a check on this device."""
        words = ["mgpu-rt selftest", f"--device {self.device}"]
        words += [f"--gpu {self.gpu}"] if self.gpu is not None else []
        return " ".join([*words, *(["--harsh"] if self.harsh else [])])


def run(asked: Request, step: Callable[[str], None]) -> Result:
    """Runs the checks and the measurements. Ctrl-C, a GPU that hangs or a full disk ends the run
    early; the result then contains the findings so far. Raises CommandError."""
    begin = time.monotonic()
    step("looking for a GPU")
    read = bundle.read()
    found = machine.find(asked.device, asked.gpu, read, asked.library)
    result = Result(__version__, datetime.date.today().isoformat(), _device(found))
    result.processor = machine.processor()
    try:
        with machine.private_folder() as scratch:
            folder = Path(scratch)
            read.lay_out(found.chip, folder)
            _test(asked, read, found, folder, result, begin, step)
    except KeyboardInterrupt:
        result.ended = INTERRUPTED
    except fast.Hung as hang:
        result.ended = f"hung: {hang}"
    except OSError as error:
        result.ended = f"failed: {error.strerror or error}, in the folder for temporary files"
    result.seconds = round(time.monotonic() - begin, 1)
    return result


def status(asked: Request, result: Result) -> int:
    """Returns the command's exit status: 0 only if every requested part was completed without a
    fault."""
    if result.wrong or result.ended.startswith("hung"):
        return 1
    is_right = result.verdict == YES or not asked.checks
    return 0 if is_right and not result.ended and not result.untimed else 2


def _test(
    asked: Request,
    read: bundle.Bundle,
    found: machine.Machine,
    folder: Path,
    result: Result,
    begin: float,
    step: Callable[[str], None],
) -> None:
    seconds = 60 * asked.minutes
    kinds = (*right.HARSH, *right.KINDS) if asked.harsh else right.KINDS
    checks = right.checks(read, found, folder, kinds)
    known = [check.name for check in checks]
    if unknown := [name for name in asked.only if name not in (*known, TIME)]:
        raise CommandError(f"--only {unknown[0]}: there are {', '.join(known)} and {TIME}")
    if asked.only:
        checks = [check for check in checks if check.name in asked.only]
    times = not asked.only or TIME in asked.only
    timing = max(TIMING * seconds, LEAST_TIMING) if times else 0.0
    until = begin + seconds - timing if not asked.only else math.inf
    result.ended = right.perform(checks, result.right, until, step, asked.command)
    if times and not result.ended.startswith("hung"):
        fast.measure(found, folder, result, min(timing, 60.0), step)


def _device(found: machine.Machine) -> dict[str, object]:
    return {
        "kind": found.kind,
        "name": found.gpu.name,
        "target": found.gpu.target,
        "devices": found.devices,
        "hip": found.hip,
        "driver": found.driver,
        "memory": found.total,
    }
