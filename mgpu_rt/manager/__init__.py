"""The data that a policy gets, and the decisions that the policy may make.

A policy is a class that `MGPU_RT_POLICY=package.module:Class` names. The manager, a separate
process (docs/python.md), creates the policy once: `Class()`. Then it calls
`decide(caches: Caches) -> Iterable[Decision]`: at most ten times a second when a cache has reached
its limit, and about once a second otherwise. A policy makes at most 49,152 decisions in a turn.

A slow policy does not delay the program: the C library serves the program's calls, and evicts the
least recently used objects beyond its limits. The manager reports a policy's exception once, and
continues with the default policy, `DefaultPolicy`.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


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


Decision = Evict | Pin


# ---- the default policy ----


class _Usage:
    """The uses of one module, as far as the policy has seen them."""

    def __init__(self) -> None:
        self.uses = 0
        self.last_use = 0.0
        self.heat = 0.0  # the number of uses, of which those a HALF_LIFE ago count half
        self.pinned = False


class DefaultPolicy:
    """Decides which modules stay loaded.

    The library itself enforces its limits, and evicts the least recently used objects first. A
    flood of modules that are used only once would evict modules in repeated use. So the policy pins
    modules in repeated use, up to half of the limit.
    """

    HALF_LIFE = 10.0  # seconds
    #: A module is in repeated use from the moment when its heat reaches HOT until the heat falls
    #: below COLD.
    HOT, COLD = 2.0, 0.1
    SHARE = 0.5  # the share of the limit that pinned modules may use

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._usage: dict[int, _Usage] = {}

    def decide(self, caches: Caches) -> Iterable[Decision]:
        self._update(caches)
        yield from self._pin(caches)
        yield from self._unload(caches)

    def _update(self, caches: Caches) -> None:
        now = self._clock()
        decay = 0.5 ** ((now - self._last) / self.HALF_LIFE)
        self._last = now
        self._usage = {m.handle: self._usage.get(m.handle, _Usage()) for m in caches.modules}
        for module in caches.modules:
            known = self._usage[module.handle]
            if module.uses != known.uses or module.held:
                known.last_use = now
            known.heat = known.heat * decay + max(module.uses - known.uses, 0)
            known.uses = module.uses

    def _pin(self, caches: Caches) -> Iterator[Pin]:
        """Pins the most used modules."""
        room = int(caches.limits.module_bytes * self.SHARE)
        usage = [(module, self._usage[module.handle]) for module in caches.modules]
        for module, known in sorted(usage, key=lambda pair: (-pair[1].heat, pair[0].handle)):
            hot = known.heat >= (self.COLD if known.pinned else self.HOT)
            keep = hot and module.bytes <= room
            if keep:
                room -= module.bytes
            if keep != known.pinned:
                known.pinned = keep
                yield Pin(module.handle, keep)

    def _unload(self, caches: Caches) -> Iterator[Evict]:
        """Evicts modules that the library could not unload earlier because their kernels were
        running, least recently used first."""
        idle = [module for module in caches.modules if not module.held]
        surplus = sum(module.bytes for module in idle) - caches.limits.module_bytes
        for module in sorted(idle, key=lambda module: self._usage[module.handle].last_use):
            if surplus > 0 and not self._usage[module.handle].pinned:
                surplus -= module.bytes
                yield Evict(Kind.MODULE, module.handle)
