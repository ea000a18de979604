"""Reads and writes files that a user names, including pipes and devices."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

Name = str | os.PathLike[str]


def read(path: Name) -> bytes:
    """Reads a file or a pipe to its end. Raises OSError, also for a device's file that may have no
    end; the null device has one, and a user can end a terminal's input."""
    with open(os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
        here, mode = os.fstat(file.fileno()), os.fstat(file.fileno()).st_mode
        has_end = os.isatty(file.fileno()) or os.path.samestat(here, os.stat(os.devnull))
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not has_end):
            raise OSError(errno.ENODEV, "a device's file may have no end", os.fspath(path))
        return file.read()


def read_regular(path: Name) -> bytes:
    """Reads a regular file. Raises OSError for any other file, which may have no end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "this is not a regular file", os.fspath(path))
    return read(path)


def write(path: Name, content: bytes) -> None:
    """Writes a file completely or not at all. Raises OSError."""
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError:
        if Path(path).is_file() and not Path(path).is_symlink():
            Path(path).unlink()
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file that other processes may be reading: these processes read either the whole old
    content or the whole new content."""
    if isinstance(content, str):
        content = content.encode()
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as fresh:
        fresh.write(content)
    os.chmod(fresh.name, 0o644)
    os.replace(fresh.name, path)
