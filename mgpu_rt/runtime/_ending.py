"""Ends a program whose runtime has raised an exception that the program cannot catch."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable


def end_by(end: Callable[[int], None], error: BaseException) -> None:
    """Prints an exception, and gives the exception's exit status to a function of C, even if the
    exception cannot be printed. The status is 0 only if the user's code requests 0.

    lib.end_program ends the process. lib.change_status ends it later, with this status in place of
    0; exit handlers that have not run yet still run."""
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
