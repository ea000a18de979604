"""The manager's access to the library in the program (csrc/manager/manager.h)."""

from __future__ import annotations

import sys
import time

from mgpu_rt import __version__
from mgpu_rt._manager import ffi, lib
from mgpu_rt.manager._protocol import (
    CachedObject,
    Decision,
    Event,
    EventKind,
    Evict,
    Kind,
    Limit,
    Limits,
    Memory,
    Pin,
)

#: The values of enum channel_request in csrc/runtime/telemetry/channel.h.
LIST, EVICT, PIN, LIMITS, LIMIT, MEMORY, SAY, WARN = range(8)

ROOM = 4096  # events read at once: as many as the ring has room for
LIST_ROOM = 16384  # entries at most in one list; others are left out
DEVICES = 64


class Refused(Exception):
    """Raised if this process cannot be the manager. The library has then already received the
    reason."""


class Channel:
    """Exchanges events, decisions and the requests of `mgpu_rt.manager.Caches` with the library."""

    def __init__(self, program: int = 0) -> None:
        """``program`` is the program's process id, 0 if unknown. Raises Refused."""
        python = sys.version.split()[0].encode()
        refused = lib.mgpu_attach(__version__.encode(), python, program)
        if refused:
            raise Refused(ffi.string(refused).decode(errors="replace"))
        self._room = ffi.new("struct mgpu_event[]", ROOM)
        self._dropped = ffi.new("uint64_t *")
        self.loud = False  # True: the program's stderr shows the policy's output
        self._told: set[int] | None = None  # handles that first_events reported; None: not called

    def first_events(self) -> tuple[list[Event], bool]:
        """Returns an arrival event for each object that existed before the first event, then the
        later events.

        The second result is False if some events are missing. The manager calls `first_events`
        before `events`."""
        later, complete = self.events(0)
        there = {
            Kind.MODULE: self.modules(),
            Kind.STREAM: self.streams(),
            Kind.BLOCK: self.blocks(),
        }
        arrived = {event.handle for event in later if event.what.arrives}
        now = time.monotonic_ns()
        first = [
            Event(EventKind(2 * kind), cached.handle, cached.bytes, cached.device, now)
            for kind, listed in there.items()
            for cached in listed
            if cached.handle not in arrived
        ]
        known = arrived | {event.handle for event in first}
        self._told = {event.handle for event in first}
        whole = complete and all(len(listed) < LIST_ROOM for listed in there.values())
        return first + [event for event in later if event.handle in known], whole

    def events(self, seconds: float) -> tuple[list[Event], bool]:
        """Waits at most `seconds`, and returns the new events. The second result is False if events
        were lost."""
        self._dropped[0] = 0
        count = lib.mgpu_events(self._room, ROOM, int(seconds * 1000), self._dropped)
        known = range(len(EventKind))
        events = [
            Event(EventKind(e.kind), e.handle, e.bytes, e.device, e.time)
            for e in self._room[0:count]
            if e.kind in known
        ]
        return [event for event in events if self._is_news(event)], self._dropped[0] == 0

    def _is_news(self, event: Event) -> bool:
        """Returns False if `first_events` has already reported the object's arrival."""
        if not self._told or event.handle not in self._told:
            return True
        self._told.discard(event.handle)
        return not event.what.arrives

    def carry_out(self, decision: Decision) -> int:
        """Returns hipError_t."""
        match decision:
            case Evict(kind, handle):
                return self._ask(EVICT, kind=Kind(kind), handle=handle)
            case Pin(handle, pinned):
                return self._ask(PIN, handle=handle, value=int(pinned))
            case Limit(kind, value, device):
                return self._ask(LIMIT, kind=Kind(kind), device=device, value=value)
        raise TypeError(f"{decision!r} is not a decision: use Evict, Pin or Limit")

    def modules(self) -> list[CachedObject]:
        return self._list(Kind.MODULE)

    def streams(self) -> list[CachedObject]:
        return self._list(Kind.STREAM)

    def blocks(self) -> list[CachedObject]:
        return self._list(Kind.BLOCK)

    def limits(self) -> Limits:
        self._ask(LIMITS)
        memory = {device: lib.mgpu_limit_of_memory(device) for device in range(DEVICES)}
        return Limits(
            lib.mgpu_limit_of_modules(),
            lib.mgpu_limit_of_streams(),
            {device: limit for device, limit in memory.items() if limit},
        )

    def memory(self, device: int) -> Memory | None:
        if self._ask(MEMORY, device=device) != 0:
            return None
        return Memory(lib.mgpu_memory_available(), lib.mgpu_memory_total())

    def say(self, text: str) -> None:
        self._ask(WARN if self.loud else SAY, text=text)

    def warn(self, text: str) -> None:
        """Prints a line on the program's stderr."""
        self._ask(WARN, text=text)

    def give_up(self) -> None:
        """Gives up without a message: from now on the library manages the caches without the
        manager."""
        lib.mgpu_give_up(b"")

    def _list(self, kind: Kind) -> list[CachedObject]:
        count = min(self._ask(LIST, kind=kind), LIST_ROOM)
        return [
            CachedObject(e.handle, e.bytes, e.uses, e.device, bool(e.held))
            for e in lib.mgpu_list()[0:count]
        ]

    @staticmethod
    def _ask(
        request: int,
        kind: int = 0,
        device: int = 0,
        handle: int = 0,
        value: int = 0,
        text: str = "",
    ) -> int:
        line = text.encode(errors="replace").replace(b"\0", b"?") if text else ffi.NULL
        return lib.mgpu_ask(request, kind, device, handle, value, line)
