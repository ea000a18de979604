"""The folder of a recording: only the owner may enter the folder, and links in the folder are not
followed.

Another user who may write to the parent folder could create or replace the recording's folder. So
the module opens files only through descriptors of folders that no other user may enter.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from contextlib import suppress

LAUNCH = "launch.json"  # the file in a launch's folder that describes the launch

_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def claim(path: str) -> None:
    """Creates the folder of a new recording, or uses an existing folder without recorded launches.
    Raises FileExistsError if the path is not a folder, or if the folder has visible contents.
    Raises OSError if the folder cannot be created or opened."""
    try:
        number = _make(path)
    except NotADirectoryError:
        raise FileExistsError(errno.EEXIST, "the path is not a folder", path) from None
    held = [name for name in os.listdir(number) if not name.startswith(".")]
    os.close(number)
    if held:
        raise FileExistsError(errno.EEXIST, "the folder is not empty", path)


class LaunchFolder:
    """The folder of one launch in a recording, which gets its name once it is complete. The
    recording's folder is created if missing; several threads and processes may record in it. Raises
    OSError if the folder cannot be written, or if others could read or change it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._name = f".{os.urandom(8).hex()}"
        self._parent = _make(os.fspath(path))
        try:
            self._number = _open(self._name, self._parent)
        except BaseException:
            os.close(self._parent)
            raise

    def keep(self, content: bytes) -> str:
        """Writes a file that is named by its hash, and returns the hash."""
        name = hashlib.sha256(content).hexdigest()
        with suppress(FileExistsError):
            self._write(name, content)
        return name

    def finish(self, description: bytes) -> None:
        """Completes the folder with the launch's description. The names order the launches."""
        self._write(LAUNCH, description)
        name = f"{time.time_ns():020d}{self._name}"
        os.rename(self._name, name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._close()

    def discard(self) -> None:
        """Removes a folder that is not complete."""
        with suppress(OSError):
            for name in os.listdir(self._number):
                os.unlink(name, dir_fd=self._number)
            os.rmdir(self._name, dir_fd=self._parent)
        self._close()

    def _write(self, name: str, content: bytes) -> None:
        with open(os.open(name, _FILE, 0o600, dir_fd=self._number), "wb") as file:
            file.write(content)

    def _close(self) -> None:
        os.close(self._number)
        os.close(self._parent)


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
    kind = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open(path, kind, dir_fd=within)
    found, why = os.fstat(number), ""
    if found.st_uid != os.geteuid():
        why = "the folder is another user's"
    elif found.st_mode & 0o077:
        why = f"others may enter the folder (its mode is {stat.S_IMODE(found.st_mode):o}, not 700)"
    if why:
        os.close(number)
        raise OSError(errno.EPERM, why, path)
    return number
