"""Folders: for what the tests of a process make once, and for a test to be in."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Subject = TypeVar("Subject")


@functools.cache
def folder(name: str) -> Path:
    """The process's folder of a name; removed when the process ends."""
    path = Path(tempfile.mkdtemp(prefix=f"mgpu_rt-{name}-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


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
