"""Defines the fixture `mgpu`, which runs programs, and fails the test if a program fails."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli import child, executable, source
from mgpu_rt._cli.child import Ended
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import ENDING, Statistics, added, read
from mgpu_rt._testing.device import chips, environment
from mgpu_rt._testing.isolated import LIMIT

#: A failure message shows at most this number of stderr lines.
_SHOWN = 20


@dataclass(frozen=True)
class Run:
    """The result of a program that has ended: status, output, and calls of the library."""

    status: int
    stdout: str
    stderr: str
    stats: list[dict[str, Any]]  # one for each of its processes, as docs/statistics.md describes
    calls: dict[str, int]  # calls of the library's functions, by name
    driver_calls: dict[str, int]  # of HIP's
    launches: dict[str, int]  # launches of each kernel


class Programs:
    """Runs programs on the session's device, with the library preloaded."""

    @property
    def chip(self) -> str | None:
        """Returns the emulated device's name, for `mgpu-rt lower --chip`; None for a GPU."""
        return next(iter(chips()), None)

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment in which a program runs on the device."""
        return environment()

    def run(
        self,
        program: str | Path,
        *arguments: str | Path,
        status: int | None = 0,
        errors: bool = False,
        timeout: float = LIMIT,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> Run:
        """Runs a program to its end and returns its output and calls.

        The test fails if a signal ends the program, or if the program takes longer than `timeout`
        seconds. The test fails if the program calls none of the library's functions. The test fails
        if a call fails and `errors` is false. The test fails if the exit status is not `status`;
        None accepts any exit status.
        """
        __tracebackhide__ = True
        command = [os.fspath(program), *map(os.fspath, arguments)]
        with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-") as folder:
            changes = {**(env or {}), "MGPU_RT_STATS": os.path.join(folder, f"%p{ENDING}")}
            whole = {**environment(), **changes}
            streams = {**child.PIPES, "stdin": subprocess.PIPE}
            try:
                executable.check(command[0])
                ended = child.run(command, whole, text=stdin, limit=timeout, cwd=cwd, **streams)
                found = [read(file) for file in sorted(Path(folder).glob(f"*{ENDING}"))]
                why = _fault(command[0], ended, found, status, errors, timeout)
            except CommandError as error:
                pytest.fail(error.message)
        if why:
            said = ended.stderr.rstrip().splitlines()
            more = ["..."] if len(said) > _SHOWN else []
            pytest.fail("\n".join([f"{command[0]}: {why}", *more, *said[-_SHOWN:]]))
        every = added(found)
        return Run(
            ended.status,
            ended.stdout,
            ended.stderr,
            [each.raw for each in found],
            *(_counts(table) for table in (every.program, every.driver, every.kernels)),
        )


def _fault(
    program: str,
    ended: Ended,
    found: list[Statistics],
    status: int | None,
    errors: bool,
    limit: float,
) -> str:
    """Returns the reason why a run makes the test fail, or an empty string."""
    if ended.status is None:
        return f"did not end in {limit:g} s (timeout=), and was killed"
    if end := child.signal_name(ended.status):
        return f"was ended by {end}"
    failures = added(found).failures
    if failures and not errors:
        return "; ".join(failures)
    if not found:
        return f"exit status {ended.status}, and {source.no_call(program)}"
    if status is not None and ended.status != status:
        return (
            f"ended with status {ended.status}, not {status}; the status of a @main that returns "
            "nothing says nothing: return an i32 there, or pass status=None"
        )
    return ""


def _counts(table: Mapping[str, Any]) -> dict[str, int]:
    return {name: counter.calls for name, counter in table.items()}
