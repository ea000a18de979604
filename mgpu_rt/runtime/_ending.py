"""Ends a program whose runtime has raised an exception that the program cannot catch."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable

from mgpu_rt._runtime import lib


def end_program(error: BaseException) -> None:
    """Ends the process, even if the exception cannot be printed. The exit status is 0 only if the
    user's code requests 0."""
    _end(error, lib.end_program)


def change_status(error: BaseException) -> None:
    """Prints an exception. If the process would end with status 0, the process ends with the
    exception's status instead. Exit handlers that have not run yet still run."""
    _end(error, lib.change_status)


def _end(error: BaseException, end: Callable[[int], None]) -> None:
    status = 1
    try:
        status = _tell(error)
        with contextlib.suppress(Exception):
            sys.stdout.flush()  # type: ignore[union-attr]
    finally:
        end(status)


def _tell(error: BaseException) -> int:
    """Prints an exception. Returns the exit status for an exception."""
    if not isinstance(error, SystemExit):
        _write("".join(traceback.format_exception(error)))
        return 1
    if isinstance(error.code, int):
        return error.code & 0xFF or int(error.code != 0)
    if error.code is None:
        return 0
    _write(f"{error.code}\n")
    return 1


def _write(text: str) -> None:
    """Writes to stderr, unless stderr is closed or full."""
    for stream in (sys.stderr, sys.__stderr__):  # the program may have replaced it
        with contextlib.suppress(Exception):
            stream.write(text)  # type: ignore[union-attr]
            return stream.flush()  # type: ignore[union-attr]
