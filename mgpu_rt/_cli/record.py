"""Implements `mgpu-rt run --record FOLDER`, which records launches for a later replay
(replay.py)."""

from __future__ import annotations

import os

from mgpu_rt._cli import executable, files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt.runtime import _folder


def claim(out: str, program: str) -> None:
    """Creates the folder of a recording. Raises CommandError if the folder cannot be created, or if
    the program cannot run."""
    executable.check(program, as_shell=True)
    try:
        _folder.claim(os.path.abspath(out))
    except FileExistsError:
        raise CommandError(f"'{out}' exists already: name another folder") from None
    except OSError as error:
        raise files.unwritable(out, error) from None
