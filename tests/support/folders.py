"""Folders and files: those that the tests of a process make once, those to be in, and those that
processes share. Several processes may run at once."""

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
    """The process's folder of a name; removed when the process ends."""
    path = Path(tempfile.mkdtemp(prefix=f"mgpu_rt-{name}-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time is inside, of all that are to make the file at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def in_folder(test: Callable[[Subject], None]) -> Callable[[Subject], None]:
    """The test in a directory of its own, to which the files that it names are relative."""

    @functools.wraps(test)
    def run(subject: Subject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                test(subject)
            finally:
                os.chdir("/")

    return run
