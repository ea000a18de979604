"""Finds libraries that could replace the libraries that a run should use."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping

from mgpu_rt import _hip_search
from mgpu_rt._cli import preload
from mgpu_rt._layout import LIBRARY


def _libraries(directory: str, name: str) -> set[str]:
    """Returns the real paths of the directory's files whose names begin with the prefix. Returns
    nothing if this process cannot enter the directory."""
    pattern = os.path.join(glob.escape(directory), f"{glob.escape(name)}*")
    return {os.path.realpath(path) for path in glob.glob(pattern)}


def _preloaded(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Finds a second runtime that LD_PRELOAD names. The loader loads our library first, but also
    runs the constructors of the second runtime."""
    ours = os.path.realpath(preload.runtime())
    for path in environment.get("LD_PRELOAD", "").split(":"):
        # A name without a folder is our library, because preload.with_library adds the folder to
        # LD_LIBRARY_PATH.
        name = os.path.basename(path)
        if name != path and name.startswith(LIBRARY) and os.path.realpath(path) != ours:
            yield f"LD_PRELOAD also names {path}", "take it out of LD_PRELOAD"


def _searched(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Finds a second runtime in LD_LIBRARY_PATH, which programs would load without mgpu-rt."""
    ours = _libraries(os.path.dirname(preload.runtime()), LIBRARY)  # ours under LLVM's other names
    for directory in environment.get("LD_LIBRARY_PATH", "").split(":"):
        for path in sorted(_libraries(directory, LIBRARY) - ours if directory else ()):
            yield (
                f"LD_LIBRARY_PATH also leads to {path}, which serves a program that is run "
                "without mgpu-rt",
                f"take {directory} out of LD_LIBRARY_PATH",
            )


def _hips(environment: Mapping[str, str], hip: str) -> Iterator[tuple[str, str]]:
    """Finds a second HIP library in LD_LIBRARY_PATH. A program that is linked with the second
    library would contain two HIP libraries."""
    folders = environment.get("LD_LIBRARY_PATH", "").split(":")
    for other in _hip_search.find(environment):
        same = os.path.realpath(other.path) == os.path.realpath(hip)
        if not same and os.path.dirname(other.path) in folders:
            yield (
                f"there is another HIP, {other.path}: a program that is linked with it would have "
                "two",
                "set MGPU_RT_HIP to the one that the program is linked with",
            )


def find(environment: Mapping[str, str], hip: str) -> Iterator[tuple[str, str]]:
    """Yields the conflicts in the environment of a run with the HIP library `hip`, each with a
    remedy."""
    yield from _preloaded(environment)
    yield from _searched(environment)
    if hip:
        yield from _hips(environment, hip)
