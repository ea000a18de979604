"""The data that a policy gets, and the decisions that the policy may make.

A policy is a class that `MGPU_RT_POLICY=package.module:Class` names. The policy runs in the
manager, a separate process (docs/python.md), so a slow policy does not delay the program. While the
policy decides, the C library serves the program's calls, and evicts the least recently used objects
beyond its limits.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable


class Kind(enum.IntEnum):
    """The kinds of objects that the library caches."""

    MODULE = 0
    STREAM = 1
    BLOCK = 2


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


class Caches(NamedTuple):
    """The library's objects and limits at the start of the manager's turn."""

    modules: list[CachedObject]
    streams: list[CachedObject]
    blocks: list[CachedObject]
    limits: Limits


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
    `Class()`.

    The manager reports an exception once, and continues with the default policy.
    """

    def decide(self, caches: Caches) -> Iterable[Decision]:
        """Returns the policy's decisions, at most 49,152.

        The manager calls `decide` when a cache has reached its limit, at most ten times a second,
        and about once a second otherwise.
        """
