"""Libraries that could take the place of the ones that a run is meant to use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mgpu_rt import _hip_search
from mgpu_rt._cli import preload
from mgpu_rt._layout import LIBRARY


def _libraries(directory: str, name: str) -> set[str]:
    """The real paths of the files in a directory whose names begin so."""
    return {os.path.realpath(path) for path in Path(directory).glob(f"{name}*")}


def _preloaded(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Another runtime that is preloaded: ours comes first, but both run their constructors."""
    ours = os.path.realpath(preload.runtime())
    for path in environment.get("LD_PRELOAD", "").split(":"):
        # Without a folder it is ours: preload.with_library says where it lies.
        name = os.path.basename(path)
        if name != path and name.startswith(LIBRARY) and os.path.realpath(path) != ours:
            yield f"LD_PRELOAD also names {path}", "take it out of LD_PRELOAD"


def _searched(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Another runtime in LD_LIBRARY_PATH: it serves programs that are run without mgpu-rt."""
    ours = _libraries(os.path.dirname(preload.runtime()), LIBRARY)  # with LLVM's other names
    for directory in environment.get("LD_LIBRARY_PATH", "").split(":"):
        for path in sorted(_libraries(directory, LIBRARY) - ours if directory else ()):
            yield (
                f"LD_LIBRARY_PATH also leads to {path}, which serves a program that is run "
                "without mgpu-rt",
                f"take {directory} out of LD_LIBRARY_PATH",
            )


def _hips(environment: Mapping[str, str], hip: str) -> Iterator[tuple[str, str]]:
    """Another HIP where a program finds what it was linked with: there would be two in it."""
    for other in _hip_search.find(environment):
        same = os.path.realpath(other.path) == os.path.realpath(hip)
        if not same and other.origin == "LD_LIBRARY_PATH":
            yield (
                f"there is another HIP, {other.path}: a program that is linked with it would have "
                "two",
                "set MGPU_RT_HIP to the one that the program is linked with",
            )


def find(environment: Mapping[str, str], hip: str) -> Iterator[tuple[str, str]]:
    """Each conflict in the environment of a run that uses the library `hip`, and the way out."""
    yield from _preloaded(environment)
    yield from _searched(environment)
    if hip:
        yield from _hips(environment, hip)
