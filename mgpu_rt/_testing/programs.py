"""Defines the fixture `mgpu`, which runs programs, and fails the test if a program fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mgpu_rt._cli import child, executable, source
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats import runs
from mgpu_rt._cli.stats.statistics import added
from mgpu_rt._testing.device import chips
from mgpu_rt._testing.isolated import LIMIT


class Run(NamedTuple):
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

    def run(
        self,
        program: str | Path,
        *arguments: str | Path,
        status: int | None = 0,
        errors: bool = False,
        timeout: float = LIMIT,
    ) -> Run:
        """Runs a program to its end and returns its output and calls.

        The test fails if a signal ends the program, if it takes longer than `timeout` seconds, or
        if it calls none of the library's functions. It also fails if a call fails and `errors` is
        false, or if the exit status is not `status`; None accepts any exit status.
        """
        __tracebackhide__ = True
        command = [os.fspath(program), *map(os.fspath, arguments)]
        try:
            executable.check(command[0])
            ended, found = runs.recorded(command, os.environ, limit=timeout, **child.PIPES)
            every = added(found)
            why = "; ".join(every.failures) if not errors else ""
            if ended.status is None:
                why = f"did not end in {timeout:g} s (timeout=), and was killed"
            elif end := child.signal_name(ended.status):
                why = f"was ended by {end}"
            elif not found:
                why = f"exit status {ended.status}, and {source.no_call(command[0])}"
            elif not why and ended.status != status is not None:
                why = (
                    f"ended with status {ended.status}, not {status}; the status of a @main that "
                    "returns nothing says nothing: return an i32 there, or pass status=None"
                )
        except CommandError as error:
            pytest.fail(error.message)
        if why or ended.status is None:
            pytest.fail(f"{command[0]}: {why}\n{ended.stderr.rstrip()}")
        raw = [each.raw for each in found]
        calls, driver_calls, launches = (
            {name: counter.calls for name, counter in table.items()}
            for table in (every.program, every.driver, every.kernels)
        )
        said = (ended.stdout, ended.stderr)
        return Run(ended.status, *said, raw, calls, driver_calls, launches)
