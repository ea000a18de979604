"""Defines the fixture `mgpu`, which runs programs, and fails the test if a program fails."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt._cli import executable
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.stats.statistics import ENDING, Statistics, added, read
from mgpu_rt._testing.device import Device

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

    def __init__(self, device: Device, timeout: float) -> None:
        self._device = device
        self._timeout = timeout

    @property
    def device(self) -> str:
        """Returns the device's kind: hip, cuda or softgpu."""
        return self._device.kind

    @property
    def chip(self) -> str | None:
        """Returns the emulated device's name, for `mgpu-rt lower --chip`; None for a GPU."""
        return self._device.chips[0] if self._device.chips else None

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment in which a program runs on the device."""
        return dict(self._device.environment)

    def run(
        self,
        program: str | Path,
        *arguments: str | Path,
        status: int | None = 0,
        errors: bool = False,
        timeout: float | None = None,
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
        limit = self._timeout if timeout is None else timeout
        with tempfile.TemporaryDirectory(prefix="mgpu-rt-test-") as folder:
            changes = {**(env or {}), "MGPU_RT_STATS": os.path.join(folder, f"%p{ENDING}")}
            try:
                executable.check(command[0])
                ended = _run(command, {**self._device.environment, **changes}, stdin, cwd, limit)
                found = [read(file) for file in sorted(Path(folder).glob(f"*{ENDING}"))]
                why = _fault(ended, found, status, errors, limit)
                why = why and _told(command[0], why, ended)
            except CommandError as error:
                why = error.message
        if why:
            pytest.fail(why)
        every = added(found)
        return Run(
            ended.status,
            ended.stdout,
            ended.stderr,
            [each.raw for each in found],
            *(_counts(table) for table in (every.program, every.driver, every.kernels)),
        )


@dataclass(frozen=True)
class _Ended:
    status: int | None  # None: the program was killed, as it took too long
    stdout: str
    stderr: str


def _run(
    command: list[str],
    environment: Mapping[str, str],
    stdin: str,
    cwd: str | Path | None,
    limit: float,
) -> _Ended:
    """Runs a program in a new session; at the time limit, kills the program and its children.
    Raises CommandError."""
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        why = executable.why_not(executable.find(command[0]), error)
        raise CommandError(f"'{command[0]}' cannot be executed: {why}") from None
    late = False
    with child:
        try:
            out, err = child.communicate(stdin, limit)
        except subprocess.TimeoutExpired:
            late = True
            _kill(child.pid)
            out, err = child.communicate()
        except BaseException:
            _kill(child.pid)
            raise
    return _Ended(None if late else child.returncode, out, err)


def _kill(group: int) -> None:
    """Ends a program and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _fault(
    ended: _Ended, found: list[Statistics], status: int | None, errors: bool, limit: float
) -> str:
    """Returns the reason why a run makes the test fail, or an empty string."""
    if ended.status is None:
        return f"did not end in {limit:g} s (timeout=, --mgpu-timeout), and was killed"
    if ended.status < 0:
        return f"was ended by {signal_name(-ended.status)}"
    failures = added(found).failures
    if failures and not errors:
        return "; ".join(failures)
    if not found:
        return (
            f"called none of the library's functions (exit status {ended.status}): name a program "
            "that MLIR lowered for a GPU"
        )
    if status is not None and ended.status != status:
        return (
            f"ended with status {ended.status}, not {status}; the status of a @main that returns "
            "nothing says nothing: return an i32 there, or pass status=None"
        )
    return ""


def signal_name(number: int) -> str:
    """Returns a signal's number and name: signal 9 (SIGKILL)."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _told(program: str, why: str, ended: _Ended) -> str:
    """Returns a failure message with the end of the program's output."""
    said = ended.stderr.rstrip().splitlines()
    more = ["..."] if len(said) > _SHOWN else []
    return "\n".join([f"{program}: {why}", *more, *said[-_SHOWN:]])


def _counts(table: Mapping[str, Any]) -> dict[str, int]:
    return {name: counter.calls for name, counter in table.items()}
