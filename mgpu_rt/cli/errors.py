"""How the command fails: with one line that names the cause and the way out."""

from __future__ import annotations

import sys
from typing import IO, Any

import click


class CommandError(click.ClickException):
    """Ends the command with a line that names the cause and the way out, and with a status."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"mgpu-rt: {self.message}", file=file or sys.stderr)
