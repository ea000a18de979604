"""Programs for the selftest's player that come out otherwise where a proof of the library is
missing.

Each ends well with stock's behaviour, and its answers are known. A stream that is held does no work
until the program lets it go on. It goes on by itself after a time, as calls of stock's wait for it.
"""

from __future__ import annotations

from csrc.selftest.programs import (
    captures,
    devices,
    graphs,
    memory,
    modules,
    overrides,
    registered,
    streams,
    times,
)
from csrc.selftest.programs.script import Group


def groups() -> list[Group]:
    """All of them; each is played by a process of its own."""
    parts = (modules, memory, streams, graphs, captures, overrides, registered, times, devices)
    found = [x for part in parts for x in vars(part).values() if isinstance(x, Group)]
    return list({group.name: group for group in found}.values())
