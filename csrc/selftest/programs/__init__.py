"""Programs for the selftest's player whose results change if a proof of the library is missing.

Each program succeeds with stock's behaviour, and its results are known. A held stream does no work
until the program releases it. The stream continues by itself after a time, as calls of stock wait
for it.
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
    """Returns all groups; a process of its own plays each."""
    parts = (modules, memory, streams, graphs, captures, overrides, registered, times, devices)
    found = [x for part in parts for x in vars(part).values() if isinstance(x, Group)]
    return list({group.name: group for group in found}.values())
