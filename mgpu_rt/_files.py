"""Accesses files that a user names, including FIFOs and devices, without waiting longer than
WAIT."""

from __future__ import annotations

import errno
import os
import select
import stat
import tempfile
import time
from pathlib import Path

WAIT = 10.0  # seconds for the other end of a FIFO
_LOOK = 0.05  # seconds between two checks for it

Name = str | os.PathLike[str]


def read(path: Name) -> bytes:
    """Reads a file or a pipe to its end. Raises OSError; for example, if the file is a device that
    may have no end, or a FIFO that gets no writer within WAIT seconds."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(number, "rb") as file:
        mode = os.fstat(number).st_mode
        if (stat.S_ISCHR(mode) and not _has_an_end(number)) or stat.S_ISBLK(mode):
            raise OSError(errno.ENODEV, "a device's file may have no end", os.fspath(path))
        begin = _begin(number, path) if stat.S_ISFIFO(mode) else b""
        os.set_blocking(number, True)
        return begin + file.read()


def _has_an_end(number: int) -> bool:
    """Returns True for the null device, and for a terminal, because the user can end a terminal's
    input."""
    return os.isatty(number) or os.path.samestat(os.fstat(number), os.stat(os.devnull))


def _begin(number: int, path: Name) -> bytes:
    """Waits until a FIFO has content or a writer. Returns the content read so far."""
    poll, end = select.poll(), time.monotonic() + WAIT
    poll.register(number, select.POLLIN)
    while not poll.poll(1000 * _LOOK):
        try:
            begin = os.read(number, 1)
        except BlockingIOError:  # there is a writer, which is slow
            return b""
        if begin:
            return begin
        if time.monotonic() > end:
            reason = f"nobody has written to this FIFO for {WAIT:.0f} s"
            raise OSError(errno.ETIMEDOUT, reason, os.fspath(path))
    return b""


def write(path: Name, content: bytes) -> None:
    """Writes a file completely or not at all. Raises OSError; for example, if a FIFO gets no reader
    within WAIT seconds."""
    number = _open_to_write(path)
    try:
        with open(number, "wb", closefd=True) as file:
            os.set_blocking(number, True)
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


def _open_to_write(path: Name) -> int:
    kind = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    end = time.monotonic() + WAIT
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | kind, 0o666)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
            if time.monotonic() > end:
                reason = f"nobody has read this FIFO for {WAIT:.0f} s"
                raise OSError(errno.ENXIO, reason, os.fspath(path)) from None
        time.sleep(_LOOK)
