"""Creates temporary folders for processes and tests, and lets only one process at a time create a
file. Several processes may run at once."""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Subject = TypeVar("Subject")


@functools.cache
def folder(name: str) -> Path:
    """Returns this process's folder of the given name; the folder is removed when the process
    ends."""
    path = Path(tempfile.mkdtemp(prefix=f"mgpu_rt-{name}-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lets one process at a time create the file at a path; the other processes wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def in_folder(test: Callable[[Subject], None]) -> Callable[[Subject], None]:
    """Runs the test in its own directory, to which relative file names refer."""

    @functools.wraps(test)
    def run(subject: Subject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                test(subject)
            finally:
                os.chdir("/")

    return run


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
