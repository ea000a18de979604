"""Reads and writes the commands' files, and creates the errors for files that cannot be read or
written."""

from __future__ import annotations

import errno
import itertools
import os
import sys
from typing import TYPE_CHECKING

from mgpu_rt._cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path


def read(path: str, way_out: str) -> bytes:
    """Reads a file that must not be empty; - means stdin. Raises CommandError."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                content = file.read()
    except OSError as error:
        raise unreadable(path, error, way_out) from None
    if not content.strip():
        raise CommandError(f"'{path}' is empty: {way_out}")
    return content


def read_mlir(path: str, way_out: str = "name a program in MLIR, or - for stdin") -> str:
    """Reads a program in MLIR's text; - means stdin. Raises CommandError."""
    content = read(path, way_out)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        bytecode = content.startswith(b"ML\xefR")
        way = "mlir-opt turns MLIR's bytecode into text" if bytecode else f"see line {line}"
        raise CommandError(f"'{path}' is not text in UTF-8: {way}") from None


def write(path: str | Path, content: bytes) -> None:
    """Writes a file completely or not at all; - means stdout. Raises CommandError."""
    try:
        if path == "-":
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        else:
            with open(path, "wb") as file:
                file.write(content)
    except OSError as error:
        if path != "-" and os.path.isfile(path) and not os.path.islink(path):
            os.unlink(path)
        raise unwritable("stdout" if path == "-" else path, error) from None


def remove_earlier(path: str) -> None:
    """Removes a file of an earlier run, which must not count as this run's if this run fails."""
    if os.path.isfile(path) and not os.path.islink(path):
        os.unlink(path)


def unreadable(path: str | Path, error: OSError, way_out: str) -> CommandError:
    return CommandError(f"'{path}' cannot be read: {error.strerror or error}; {way_out}")


def unwritable(path: str | Path, error: OSError) -> CommandError:
    return CommandError(
        f"'{path}' cannot be written: {error.strerror or error}; name another place"
    )


def check_writable(path: str | Path) -> None:
    """Checks that a file can be written: opens the file before the work starts, and leaves the
    file's content unchanged. Raises CommandError."""
    existed = os.path.lexists(path)
    kind = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | kind, 0o666))
    except OSError as error:
        if error.errno != errno.ENXIO:  # a FIFO without a reader so far
            raise unwritable(path, error) from None
        return
    if not existed:
        os.unlink(path)


def claim(folder: str) -> str:
    """Creates the folder of a recording, and returns its name. If the folder holds something, a
    number is appended. Raises CommandError."""
    from mgpu_rt._recordings import folder as recordings

    for number in itertools.count(1):
        name = folder if number == 1 else f"{folder.rstrip('/')}-{number}"
        try:
            recordings.claim(os.path.abspath(name))
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(name, error) from None
        return name
    raise AssertionError
