"""The base class of the manager's two caches, which mirror the objects that the library holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from mgpu_rt.manager._protocol import CachedObject, Event, Kind


class Entry:
    """An object of HIP that the library owns.

    `uses`, `held` and `last_use` change only when the mirror reads the library's list, because hits
    cause no events.
    """

    __slots__ = ("bytes", "device", "handle", "heat", "held", "last_use", "pinned", "uses")

    def __init__(self, handle: int, size: int, device: int, now: float) -> None:
        self.handle = handle
        self.bytes = size
        self.device = device
        self.uses = 0
        self.held = True
        self.last_use = now
        self.heat = 0.0
        self.pinned = False

    def __repr__(self) -> str:
        return f"<{self.handle:#x}, {self.bytes} bytes, device {self.device}>"


class Mirror:
    """The objects of one kind, by handle, oldest first.

    Events keep the mirror up to date. From time to time the mirror reads the library's list, which
    contains the counts of uses. Reading the list also corrects the mirror if events were lost.
    """

    #: The seconds between two readings of the library's list. If no object is in use and no event
    #: arrives, the interval is ten times as long.
    INTERVAL = 1.0

    def __init__(self, kind: Kind, read: Callable[[], list[CachedObject]]) -> None:
        self._kind = kind
        self._read = read
        self._entries: dict[int, Entry] = {}
        self._next_look = 0.0
        self.clock: Callable[[], float] = time.monotonic

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def __contains__(self, handle: int) -> bool:
        return handle in self._entries

    def note(self, events: Sequence[Event], complete: bool) -> None:
        """Enters events."""
        now = self.clock()
        mine = [event for event in events if event.what.kind == self._kind]
        for event in mine:
            if event.what.arrives:
                entry = Entry(event.handle, event.bytes, event.device, now)
                self._entries[event.handle] = entry
            else:
                self._entries.pop(event.handle, None)
        if not complete:
            self._next_look = now
        elif mine:
            self._next_look = min(self._next_look, now + self.INTERVAL)

    def look(self) -> bool:
        """Updates the mirror from the library's list if the next reading is due. Returns True if
        the list was read."""
        now = self.clock()
        if now < self._next_look:
            return False
        self._next_look = now + 10 * self.INTERVAL
        entries: dict[int, Entry] = {}
        for cached in self._read():
            entry = self._entries.get(cached.handle)
            if entry is None:
                entry = Entry(cached.handle, cached.bytes, cached.device, now)
            self._update(entry, cached, now)
            entries[cached.handle] = entry
        self._entries = entries
        return True

    def _update(self, entry: Entry, cached: CachedObject, now: float) -> None:
        used = cached.uses - entry.uses
        if used or cached.held:
            entry.last_use = now
            self._next_look = min(self._next_look, now + self.INTERVAL)
        entry.heat = entry.heat / 2 + max(used, 0)
        entry.uses, entry.held = cached.uses, cached.held

    def idle(self) -> list[Entry]:
        """Returns the objects that the program does not hold, least recently used first."""
        return sorted((e for e in self if not e.held), key=lambda e: e.last_use)
