"""The user's folder for caches. The user may have no home, or the process may be
unable to enter the home, as under `docker --user` and `sudo -u`."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def _home() -> Path | None:
    """Returns the home of HOME, or of the user's entry in the system's list of users."""
    home = os.path.expanduser("~")
    return Path(home) if os.path.isabs(home) else None


def cache() -> Path | None:
    """Returns the folder for this package's cache; None if the user has no home. As XDG prescribes,
    ignores a variable with a relative path."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named, "mgpu_rt")
    home = _home()
    return home and home / ".cache" / "mgpu_rt"


def make(folder: Path | None) -> Path:
    """Makes a folder of the user, but never the home itself. Raises OSError."""
    home = _home()
    if folder is None or (home and home in folder.parents and not home.exists()):
        raise FileNotFoundError(errno.ENOENT, "there is no home", str(home or "~"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
