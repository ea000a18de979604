"""The folder of a recording: only the owner may enter the folder, and links in the folder are not
followed.

Another user who may write to the parent folder could create or replace the recording's folder. So
the module opens files only through descriptors of folders that no other user may enter.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MANIFEST, BLOBS = "manifest.jsonl", "blobs"

_LONGEST = 10.0  # seconds that another writer may take to append one line
_FILE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def claim(path: str) -> None:
    """Creates the folder of a new recording, or uses an existing folder without recorded launches.
    Raises FileExistsError if the path is not a folder, or if the folder contains more than an empty
    `blobs`. Raises OSError if the folder cannot be created or opened."""
    try:
        number = _make(path)
    except NotADirectoryError:
        raise FileExistsError(errno.EEXIST, "the path is not a folder", path) from None
    held = set(os.listdir(number))
    os.close(number)
    if held - {BLOBS} or (held and os.listdir(os.path.join(path, BLOBS))):
        raise FileExistsError(errno.EEXIST, "the folder is not empty", path)


class Folder:
    """A recording's folder, which is created if missing. Several threads and processes may write to
    the folder. Raises OSError if the folder cannot be written, or if others could read or change
    it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.number = _make(str(self.path))
        try:
            self._blobs = _open(BLOBS, self.number)
        except BaseException:
            os.close(self.number)
            raise

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._blobs)
        os.close(self.number)

    def keep(self, content: bytes) -> str:
        """Stores a blob completely or not at all. Returns the blob's name, which is its hash."""
        name = hashlib.sha256(content).hexdigest()
        with suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=self._blobs, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_size == len(content):
                return name
        fresh = f"{name}.{os.urandom(8).hex()}"
        number = os.open(fresh, os.O_WRONLY | os.O_EXCL | _FILE, 0o600, dir_fd=self._blobs)
        try:
            with limits_are_errors(), open(number, "wb", buffering=0) as file:
                _write(file.fileno(), content)
            os.replace(fresh, name, src_dir_fd=self._blobs, dst_dir_fd=self._blobs)
        except BaseException:
            os.unlink(fresh, dir_fd=self._blobs)
            raise
        return name

    def append(self, line: bytes) -> None:
        """Appends a line to the manifest completely or not at all."""
        number = os.open(MANIFEST, os.O_RDWR | os.O_APPEND | _FILE, 0o600, dir_fd=self.number)
        try:
            with _alone(number, self.path):
                end = _end_of_lines(number)
                os.ftruncate(number, end)  # the rest of a killed writer's line
                try:
                    with limits_are_errors():
                        _write(number, line + b"\n")
                except BaseException:
                    os.ftruncate(number, end)
                    raise
        finally:
            os.close(number)


def _make(path: str) -> int:
    """Returns the descriptor of the folder at `path`. Creates the folder and missing parent
    folders. Raises OSError."""
    with suppress(FileExistsError):  # another file, which _open reports
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return _open(path)


def _open(path: str, within: int | None = None) -> int:
    """Returns the descriptor of a folder that only this user, its owner, may enter. Creates the
    folder if it is missing. Raises OSError."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=within)
    if stat.S_ISLNK(os.stat(path, dir_fd=within, follow_symlinks=False).st_mode):
        raise OSError(errno.ELOOP, "the path is a symbolic link", path)
    number = os.open(
        path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within
    )
    found, why = os.fstat(number), ""
    if found.st_uid != os.geteuid():
        why = "the folder is another user's"
    elif found.st_mode & 0o077:
        why = f"others may enter the folder (its mode is {stat.S_IMODE(found.st_mode):o}, not 700)"
    if why:
        os.close(number)
        raise OSError(errno.EPERM, why, path)
    return number


@contextmanager
def _alone(number: int, path: Path) -> Iterator[None]:
    """Holds the file's lock, so that no other thread or process appends to the file. Raises
    OSError."""
    try:
        _lock(number, path)
        yield
    finally:
        with suppress(OSError):  # by hand, as a child of fork may have the descriptor too
            fcntl.flock(number, fcntl.LOCK_UN)


def _lock(number: int, path: Path) -> None:
    """Waits for other writers. Each line that a writer appends restarts the time limit."""
    size, end = -1, 0.0
    while True:
        try:
            return fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now, last = time.monotonic(), os.fstat(number).st_size
            if last != size:
                size, end = last, now + _LONGEST
            elif now > end:
                words = f"another process has kept this recording for {_LONGEST:.0f} s"
                raise OSError(errno.EBUSY, words, str(path)) from None
        except OSError:  # a file system without locks
            return None
        time.sleep(0.001)


def _end_of_lines(number: int) -> int:
    """Returns the size of a file up to the end of its last complete line."""
    size = os.fstat(number).st_size
    if not size or os.pread(number, 1, size - 1) == b"\n":
        return size
    return os.pread(number, size, 0).rfind(b"\n") + 1


def _write(number: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(number, left) :]


@contextmanager
def limits_are_errors() -> Iterator[None]:
    """Blocks SIGXFSZ, so that a write beyond the file size limit raises OSError. Without the block,
    SIGXFSZ would end the program. At the end, a SIGXFSZ that such a write caused is discarded. A
    SIGXFSZ that was already pending stays pending."""
    limit = {signal.SIGXFSZ}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, limit)
    pending = limit & signal.sigpending()
    try:
        yield
    finally:
        if not pending and limit & signal.sigpending():
            signal.sigtimedwait(limit, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
