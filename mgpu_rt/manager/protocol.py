"""What a policy is told, and what it may decide.

A policy is a class that `MGPU_RT_POLICY=package.module:Class` names. It runs in the manager, a
process beside the program (docs/python.md), so it may take its time: the program's calls are served
by the C library meanwhile, least recently used first within its limits.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Kind(enum.IntEnum):
    """What the library caches."""

    MODULE = 0
    STREAM = 1
    BLOCK = 2


class What(enum.IntEnum):
    """What can happen: something was got from HIP, or given back to it.

    Hits are not told: `Cached.uses` counts them.
    """

    MODULE_LOADED = 0
    MODULE_UNLOADED = 1
    STREAM_CREATED = 2
    STREAM_DESTROYED = 3
    BLOCK_ALLOCATED = 4
    BLOCK_FREED = 5

    @property
    def kind(self) -> Kind:
        return Kind(self // 2)

    @property
    def arrives(self) -> bool:
        """True if it was got, False if it was given back."""
        return self % 2 == 0


class Event(NamedTuple):
    """Something happened at `time` (ns, CLOCK_MONOTONIC). `bytes` is 0 for streams."""

    what: What
    handle: int
    bytes: int
    device: int
    time: int


class Cached(NamedTuple):
    """One thing that the library holds from HIP; `held` says that the program has it now.

    `bytes` and `uses` are 0 for streams: nobody counts them.
    """

    handle: int
    bytes: int
    uses: int
    device: int
    held: bool


class Limits(NamedTuple):
    """What the library keeps although the program does not hold it.

    `memory` is by device, of all that is held there; devices that were not used are left out.
    """

    module_bytes: int
    streams: int
    memory: dict[int, int]


class Memory(NamedTuple):
    """A device's memory as its driver sees it, for all processes."""

    available: int
    total: int


class Caches(Protocol):
    """The library in the program. Each call is a question to it: 20 µs, more for long lists."""

    def modules(self) -> list[Cached]: ...
    def streams(self) -> list[Cached]: ...
    def blocks(self) -> list[Cached]: ...
    def limits(self) -> Limits: ...

    def memory(self, device: int) -> Memory | None:
        """None if the driver does not say. Ask only for a device that an event has named."""

    def say(self, text: str) -> None:
        """A line on the program's stderr."""


class Evict(NamedTuple):
    """Give this back to HIP. It stays if the program holds it or work may need it."""

    kind: Kind
    handle: int


class Pin(NamedTuple):
    """Keep this module, or no longer: limits pass it over. Evict still takes it."""

    handle: int
    pinned: bool = True


class Limit(NamedTuple):
    """Keep so many bytes of modules, so many streams, so many bytes of a device's memory."""

    kind: Kind
    value: int
    device: int = 0


Decision = Evict | Pin | Limit


@runtime_checkable
class Policy(Protocol):
    """What MGPU_RT_POLICY may name. It is made once, as `Class(caches)`.

    An exception is reported once, and the policy that ships goes on.
    """

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        """Called when something has happened, and once a second.

        `events` are in their order; the first ones are of what was there before. `complete` is
        False whenever more has happened than could be told: then only the lists of `Caches` say
        what there is. What becomes of a decision comes back as an event.
        """
