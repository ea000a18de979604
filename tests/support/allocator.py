"""An allocator that replaces libc's allocator and watches the library under test (allocator.c)."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.support.child import library
from tests.support.compiled import compile_c
from tests.support.folders import folder

_SOURCE = Path(__file__).with_name("allocator.c")
_LINE = re.compile(r"(held|fork|count) (\w+)")


@functools.cache
def preload() -> Path:
    """Returns the path of the allocator, for LD_PRELOAD. Its variables of threads have fixed
    places: newer releases of glibc allocate memory for others at the first use."""
    out = folder("allocator") / "liballocator.so"
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-ftls-model=initial-exec")
    return compile_c(out, _SOURCE.read_text(), *flags)


def settings(log: Path, **changes: str) -> dict[str, str]:
    """Returns the environment of a process whose allocations are watched."""
    return {
        "LD_PRELOAD": str(preload()),
        "ALLOCATOR_LIBRARY": str(library()),
        "ALLOCATOR_LOG": str(log),
        **{f"ALLOCATOR_{name.upper()}": value for name, value in changes.items()},
    }


@dataclass(frozen=True)
class Watched:
    """The calls that the allocator has recorded."""

    forks: frozenset[str]  # locks that a fork waits for
    held: Counter[str]  # how often the allocator was called under which lock
    count: int  # allocations by the library

    @property
    def under_locks_of_forks(self) -> dict[str, int]:
        """Returns how often the allocator was called under locks for which a fork waits."""
        return {lock: times for lock, times in self.held.items() if lock in self.forks}


def read(log: Path) -> Watched:
    """Reads the lines of all processes in a log."""
    found: dict[str, Counter[str]] = {"held": Counter(), "fork": Counter(), "count": Counter()}
    for kind, value in _LINE.findall(log.read_text()):
        found[kind][value] += 1
    return Watched(frozenset(found["fork"]), found["held"], sum(map(int, found["count"])))
