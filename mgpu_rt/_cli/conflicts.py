"""Finds libraries that could replace the libraries that a run should use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from mgpu_rt import _hip_search
from mgpu_rt._cli import preload
from mgpu_rt._layout import LIBRARY


def find(environment: Mapping[str, str], hip: str) -> Iterator[tuple[str, str]]:
    """Yields the conflicts in the environment of a run with the HIP library `hip`, each with a
    remedy."""
    ours = os.path.realpath(preload.runtime())
    for path in environment.get("LD_PRELOAD", "").split(":"):
        # A name without a folder is our library, because preload.with_library adds the folder to
        # LD_LIBRARY_PATH.
        name = os.path.basename(path)
        if name != path and name.startswith(LIBRARY) and os.path.realpath(path) != ours:
            yield f"LD_PRELOAD also names {path}", "take it out of LD_PRELOAD"
    folders = environment.get("LD_LIBRARY_PATH", "").split(":")
    for other in _hip_search.find(environment) if hip else ():
        same = os.path.realpath(other.path) == os.path.realpath(hip)
        if not same and os.path.dirname(other.path) in folders:
            yield (
                f"there is another HIP, {other.path}: a program that is linked with it would have "
                "two",
                "set MGPU_RT_HIP to the one that the program is linked with",
            )
