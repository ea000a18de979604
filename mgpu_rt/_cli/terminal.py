"""Shows on a terminal how far a command is, and colours the levels of messages."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

import click

_PATIENCE = 5.0  # seconds until a line says that a program still runs


def progress(text: str) -> None:
    """Shows progress on one changing line of a terminal; shows nothing if stderr is no terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", nl=False, err=True)


def step(text: str) -> None:
    """Shows a line for the next part of the work, before a program that writes to the terminal,
    too. Shows nothing if stderr is no terminal."""
    if sys.stderr.isatty():
        click.echo(f"mgpu-rt: {text}", err=True)


@contextlib.contextmanager
def told_if_long(text: str) -> Iterator[None]:
    """Shows a line if the block takes long."""
    timer = threading.Timer(_PATIENCE, step, [text])
    timer.daemon = True
    # The thread inherits the mask: Ctrl-C and SIGTERM are for the thread that waits.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        timer.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        timer.cancel()


_COLOURS = {"error": "red", "warning": "magenta"}


def message(text: str) -> None:
    """Writes a message that begins with its level, such as "error: ...", to stderr. The level has a
    colour on a terminal, unless NO_COLOR is set."""
    level, colon, rest = text.partition(":")
    if level in _COLOURS and not os.environ.get("NO_COLOR") and sys.stderr.isatty():
        text = click.style(level + colon, fg=_COLOURS[level], bold=True) + rest
    click.echo(text, err=True)
