"""Defines how commands fail: with one line that names the cause and the remedy."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import click


class CommandError(click.ClickException):
    """Ends the command with an exit status, after a line that names the cause and the remedy."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        from mgpu_rt._text import printable

        lines = (printable(line.expandtabs()) for line in self.message.split("\n"))
        click.echo("mgpu-rt: " + "\n".join(lines), file=file or sys.stderr)


class NoDevice(CommandError):
    """Raised if a part of a device is missing; the message names the part and how to get it."""


def open_missing_streams() -> None:
    """Opens a stream that the caller closed, so that no other file gets its number. Reads of stdin
    and writes to stdout fail, as before. Programs still get the streams closed."""
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def tolerate_encodings() -> None:
    """Makes stdout print an escape for a character that its encoding lacks; by default stdout would
    raise an exception."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
