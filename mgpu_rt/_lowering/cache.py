"""Caches the results of lowering under a hash of the inputs.

A repeated request costs a hash (under 1 ms) instead of a lowering (0.2 s).
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from mgpu_rt import _layout
from mgpu_rt._lowering.toolchain import ToolchainMissing


def users_folder() -> Path | None:
    """Returns this package's folder in the user's cache directory; None if the user has no home. As
    XDG prescribes, ignores a variable with a relative path."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named, "mgpu_rt")
    home = _home()
    return home and home / ".cache" / "mgpu_rt"


def _home() -> Path | None:
    """Returns the home of HOME, or of the user's entry in the system's list of users."""
    home = os.path.expanduser("~")
    return Path(home) if os.path.isabs(home) else None


#: A checkout that was carried to a machine without MLIR has brought its results. All other
#: checkouts and installations share the user's folder.
_CARRIED = _layout.CHECKOUT / "build" / "objects"
OBJECTS = _CARRIED if not _layout.INSTALLED and _CARRIED.exists() else users_folder()


def kept(
    stem: str,
    suffix: str,
    key: object,
    tools: Callable[[], Sequence[Path]],
    make: Callable[[], bytes],
    *,
    executable: bool = False,
) -> Path:
    """Returns the path of the cached result for `key`, a file with the name `stem` and `suffix`. If
    no result is cached, computes and stores the result. ``executable``: the file is a program.

    The size and time of a tool's file identify the tool's version: a run with ``--version`` would
    take 30 ms. If tools are missing, returns the newest result for `key`, even if other versions of
    the tools produced the result. So the results can be carried to a GPU machine that has no MLIR,
    as ``build/objects``. A rename puts the complete result, with its mode, in place in one step.
    So another process may use the file at once, or put its own there. Raises ValueError if this
    process cannot write to the cache's folder.
    """
    name = _digest(key)
    try:
        stamps = [(str(t), (s := t.stat()).st_size, s.st_mtime_ns) for t in tools()]
    except ToolchainMissing:
        pattern = f"{name}-*/{glob.escape(stem + suffix)}"
        carried = [Path(path) for path in glob.glob(f"{glob.escape(str(OBJECTS))}/{pattern}")]
        if not carried:
            raise
        return max(carried, key=lambda path: path.stat().st_mtime)
    file = f"{name}-{_digest(stamps)[:8]}/{stem}{suffix}"
    if OBJECTS and os.path.exists(OBJECTS / file):
        return OBJECTS / file
    content = make()
    try:
        return _store(_made(OBJECTS), file, content, executable)
    except OSError as error:
        raise ValueError(
            f"lowered programs cannot be kept in '{error.filename or OBJECTS}' "
            f"({error.strerror}): set "
            "XDG_CACHE_HOME to a folder that can be written"
        ) from None


def _made(folder: Path | None) -> Path:
    """Makes the cache's folder, but never the home itself. The user may have no home, or the
    process may be unable to enter it, as under `docker --user` and `sudo -u`. Raises OSError."""
    home = _home()
    if folder is None or (home and home in folder.parents and not home.exists()):
        raise FileNotFoundError(errno.ENOENT, "there is no home", str(home or "~"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _store(folder: Path, file: str, content: bytes, executable: bool) -> Path:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        result = Path(scratch, "result")
        with open(result, "wb") as opened:
            opened.write(content)
            opened.flush()
            # After a loss of power, the name must not lead to a part of the content: a part would
            # crash each later run. This takes milliseconds once, beside a lowering.
            os.fsync(opened.fileno())
        if executable:
            result.chmod(0o755)
        (folder / file).parent.mkdir(exist_ok=True)
        return result.replace(folder / file)


def _digest(inputs: object) -> str:
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:20]
