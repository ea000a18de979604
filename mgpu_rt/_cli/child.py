"""Runs a program to its end, and explains how the program ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mgpu_rt._cli import executable
from mgpu_rt._cli.errors import CommandError


class Ended(NamedTuple):
    """How a program ended. `status` is its exit status, or the negated number of the signal that
    ended the program. If the program was killed at its time limit, `status` is None."""

    status: int | None
    stdout: str
    stderr: str


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    text: str | None = None,
    limit: float | None = None,
    **streams: Any,
) -> Ended:
    """Runs a program to its end. Ctrl-C does not end the wait, because the program gets the signal
    too. `text` is the program's stdin; `streams` are subprocess.Popen's arguments. With a `limit`
    in seconds, the program leads a session of its own, whose processes are killed at the limit.
    Raises CommandError."""
    try:
        child = subprocess.Popen(
            [*command],
            env=environment,
            encoding="utf-8",
            errors="replace",
            start_new_session=limit is not None,
            **streams,
        )
    except OSError as error:
        why = executable.why_not(executable.find(command[0], environment), error)
        raise CommandError(f"'{command[0]}' cannot be executed: {why}") from None
    with child:
        while True:
            try:
                out, err = child.communicate(text, limit)
                return Ended(child.returncode, out or "", err or "")
            except subprocess.TimeoutExpired:
                kill(child.pid)
                out, err = child.communicate()
                return Ended(None, out or "", err or "")
            except KeyboardInterrupt:
                if limit is None:
                    continue
                kill(child.pid)
                raise
            except BaseException:
                if limit is not None:
                    kill(child.pid)
                raise


def kill(group: int) -> None:
    """Kills a process and the other processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def signal_name(status: int | None) -> str:
    """Names the signal that ended a program: signal 9 (SIGKILL). Returns "" if no signal did."""
    if status is None or status >= 0:
        return ""
    names = {each.value: f" ({each.name})" for each in signal.Signals}
    return f"signal {-status}{names.get(-status, '')}"
