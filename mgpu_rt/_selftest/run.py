"""Runs a whole selftest: its steps in order."""

from __future__ import annotations

import datetime
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import __version__
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._selftest import bundle, fast, machine, right
from mgpu_rt._selftest.result import YES, Result

TIME = "time"
INTERRUPTED = "interrupted"

#: The fields of Machine that a result contains.
DEVICE = ("kind", "name", "target", "devices", "hip", "reports", "driver")


@dataclass(frozen=True)
class Request:
    """The options that the user has requested."""

    device: str = "auto"
    harsh: bool = False
    only: tuple[str, ...] = ()

    @property
    def checks(self) -> bool:
        """Returns False if the user requested only the timing."""
        return set(self.only) != {TIME}

    @property
    def command(self) -> str:
        """Returns the beginning of the command that repeats a check on this device."""
        return f"mgpu-rt selftest --device {self.device}" + " --harsh" * self.harsh


def run(asked: Request, step: Callable[[str], None]) -> Result:
    """Runs the checks and the measurements. Ctrl-C, a GPU that hangs or a full disk ends the run
    early; the result then contains the findings so far. Raises CommandError."""
    begin = time.monotonic()
    step("looking for a GPU")
    read = bundle.read()
    found = machine.find(asked.device, read)
    device = {name: getattr(found, name) for name in DEVICE}
    result = Result(__version__, datetime.date.today().isoformat(), device)
    result.processor = machine.processor()
    try:
        with tempfile.TemporaryDirectory(prefix="mgpu_rt-selftest-") as scratch:
            folder = Path(scratch)
            read.lay_out(found.chip, folder)
            _test(asked, read, found, folder, result, step)
    except KeyboardInterrupt:
        result.ended = INTERRUPTED
    except OSError as error:
        result.ended = f"failed: {error.strerror or error}, in the folder for temporary files"
    result.seconds = round(time.monotonic() - begin, 1)
    return result


def status(asked: Request, result: Result) -> int:
    """Returns the command's exit status: 0 only if every requested part was completed without a
    fault."""
    if result.ended == INTERRUPTED:
        return 128 + signal.SIGINT
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
    step: Callable[[str], None],
) -> None:
    kinds = (*right.HARSH, *right.KINDS) if asked.harsh else right.KINDS
    checks = right.checks(read, found, folder, kinds)
    known = [check.name for check in checks]
    if unknown := [name for name in asked.only if name not in (*known, TIME)]:
        raise CommandError(f"--only {unknown[0]}: there are {', '.join(known)} and {TIME}")
    if asked.only:
        checks = [check for check in checks if check.name in asked.only]
    result.ended = right.perform(checks, result.right, step, asked.command)
    if (not asked.only or TIME in asked.only) and not result.ended:
        fast.measure(found, folder, result, step)
