"""How the command fails: with one line that names the cause and the way out."""

from __future__ import annotations

from typing import NoReturn

import click


class Problem(Exception):
    """Why something cannot be done, with the way out, and the exit status for it."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def fail(problem: Exception) -> NoReturn:
    """Ends the command; with status 2 unless the problem has its own."""
    click.echo(f"mgpu-rt: {problem}", err=True)
    raise SystemExit(getattr(problem, "status", 2))
