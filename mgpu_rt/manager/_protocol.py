"""The events that a policy gets, and the decisions that the policy may make.

A policy is a class that `MGPU_RT_POLICY=package.module:Class` names. The policy runs in the
manager, a separate process (docs/python.md), so a slow policy does not delay the program. While the
policy decides, the C library serves the program's calls, and evicts the least recently used objects
beyond its limits.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Kind(enum.IntEnum):
    """The kinds of objects that the library caches."""

    MODULE = 0
    STREAM = 1
    BLOCK = 2


class EventKind(enum.IntEnum):
    """The kinds of events: an object's arrival from HIP, or an object's release to HIP.

    A hit causes no event: `CachedObject.uses` counts hits.
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
        """Returns True if the library got the object from HIP, False if it released the object."""
        return self % 2 == 0


class Event(NamedTuple):
    """An event at `time` (ns, CLOCK_MONOTONIC). `bytes` is 0 for streams."""

    what: EventKind
    handle: int
    bytes: int
    device: int
    time: int


class CachedObject(NamedTuple):
    """An object of HIP that the library owns; `held` is True if the program has the object now.

    `bytes` and `uses` are 0 for streams: the library does not count them.
    """

    handle: int
    bytes: int
    uses: int
    device: int
    held: bool


class Limits(NamedTuple):
    """The limits on unused objects, which the program does not hold.

    `memory` maps each device in use to a number of bytes, the limit on the device's unused blocks.
    """

    module_bytes: int
    streams: int
    memory: dict[int, int]


class Memory(NamedTuple):
    """A device's total and available memory in bytes, as the driver reports them for all
    processes."""

    available: int
    total: int


class Caches(Protocol):
    """Queries the library in the program. Each query takes 20 µs, or longer for a long list."""

    def modules(self) -> list[CachedObject]: ...
    def streams(self) -> list[CachedObject]: ...
    def blocks(self) -> list[CachedObject]: ...
    def limits(self) -> Limits: ...

    def memory(self, device: int) -> Memory | None:
        """Returns None if the driver does not answer. Pass only a device that an event has
        named."""

    def say(self, text: str) -> None:
        """Prints a line on the program's stderr."""


class Evict(NamedTuple):
    """Releases this object to HIP. The library keeps the object if the program holds it or pending
    work may need it."""

    kind: Kind
    handle: int


class Pin(NamedTuple):
    """Exempts this module from the limit; `pinned=False` ends the exemption. `Evict` can still
    release a pinned module."""

    handle: int
    pinned: bool = True


class Limit(NamedTuple):
    """Limits the bytes of modules, the number of streams, or the bytes of a device's memory."""

    kind: Kind
    value: int
    device: int = 0


Decision = Evict | Pin | Limit


@runtime_checkable
class Policy(Protocol):
    """The interface of a class that MGPU_RT_POLICY names. The manager creates the policy once:
    `Class(caches)`.

    The manager reports an exception once, and continues with the default policy.
    """

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        """Returns the policy's decisions. The manager calls `decide` after events, and about once a
        second if no event arrives.

        `events` are in order; the first events report the objects that existed before the manager
        started. `complete` is False if events were lost: then only the lists of `Caches` are
        correct. The effect of a decision arrives as an event.
        """
