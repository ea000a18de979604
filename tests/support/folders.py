"""A folder for what the tests of a process make once."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path


@functools.cache
def folder(name: str) -> Path:
    """The process's folder of a name; removed when the process ends."""
    path = Path(tempfile.mkdtemp(prefix=f"mgpu_rt-{name}-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
