"""Programs for the selftest's player. A program gives a wrong result if the library lacks one of
the proofs in proofs.md.

With stock's behaviour each program succeeds, and its results are known. A held stream runs no work
until the program releases the stream. After a time limit the stream continues even without a
release. Otherwise the stock runtime could wait for the stream for ever, and the program would never
reach the release.
"""

from __future__ import annotations

from tests.proofs.programs import captures, copies, devices, graphs, memory, registered, streams
from tests.proofs.programs.script import Group


def groups() -> list[Group]:
    """Returns all groups; a separate process plays each group."""
    parts = (copies, memory, streams, graphs, captures, registered, devices)
    found = [x for part in parts for x in vars(part).values() if isinstance(x, Group)]
    return list({group.name: group for group in found}.values())
