"""Runs a policy on a recorded list of events, without a program, and returns the policy's
decisions.

MGPU_RT_POLICY=mgpu_rt.manager.rehearsal:Record ./program 2> events

for time, decision in rehearse(KeepFirst, read("events")):
    print(time, decision)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from mgpu_rt import _files
from mgpu_rt.manager._default_policy import DefaultPolicy
from mgpu_rt.manager._protocol import (
    CachedObject,
    Caches,
    Decision,
    Event,
    EventKind,
    Evict,
    Kind,
    Limit,
    Limits,
    Memory,
    Policy,
)

#: The library's default limits.
LIMITS = Limits(module_bytes=256 << 20, streams=32, memory={})
SECOND = 1_000_000_000  # in the unit of Event.time
AT_ONCE = SECOND // 50  # events within this time come in one turn


class Record(DefaultPolicy):
    """The default policy, which also prints each event as a line that `read` understands."""

    def __init__(self, caches: Caches) -> None:
        super().__init__(caches)
        self._say = caches.say

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        for event in events:
            self._say(json.dumps({**event._asdict(), "what": event.what.name}))
        return super().decide(events, complete)


def read(path: str | os.PathLike[str]) -> list[Event]:
    """Reads the events in a file of lines; other lines are skipped. Raises OSError if the file
    cannot be read, and ValueError if an event is damaged."""
    found = []
    text = _files.read(path).decode(errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        begin = line.find('{"what":')
        if begin < 0:
            continue
        try:
            fields = json.loads(line[begin:])
            found.append(Event(**{**fields, "what": EventKind[fields["what"]]}))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{os.fspath(path)}:{number} is not an event: {error!r}") from None
    return found


class _Library:
    """A model of the library for a policy: an object exists from its arrival event to its release
    event."""

    def __init__(self, limits: Limits, memory: dict[int, Memory], held: Collection[int]) -> None:
        self._limits, self._memory, self._held = limits, memory, held
        self._things: dict[Kind, dict[int, Event]] = {kind: {} for kind in Kind}
        self.now = 0

    def enter(self, event: Event) -> None:
        things = self._things[event.what.kind]
        if event.what.arrives:
            things[event.handle] = event
        else:
            things.pop(event.handle, None)

    def carry_out(self, decision: Decision) -> Event | None:
        """Returns the event that follows a decision; None if the library releases nothing."""
        if isinstance(decision, Limit):
            self._set_limit(decision)
        if not isinstance(decision, Evict) or decision.handle in self._held:
            return None
        gone = self._things[decision.kind].pop(decision.handle, None)
        what = EventKind(2 * decision.kind + 1)
        return gone._replace(what=what, time=self.now) if gone else None

    def _set_limit(self, limit: Limit) -> None:
        if limit.kind == Kind.BLOCK:
            memory = {**self._limits.memory, limit.device: limit.value}
            self._limits = self._limits._replace(memory=memory)
        else:
            name = "module_bytes" if limit.kind == Kind.MODULE else "streams"
            self._limits = self._limits._replace(**{name: limit.value})

    def _list(self, kind: Kind) -> list[CachedObject]:
        return [
            CachedObject(e.handle, e.bytes, 0, e.device, e.handle in self._held)
            for e in self._things[kind].values()
        ]

    # Answers a policy's queries (protocol.Caches).

    def modules(self) -> list[CachedObject]:
        return self._list(Kind.MODULE)

    def streams(self) -> list[CachedObject]:
        return self._list(Kind.STREAM)

    def blocks(self) -> list[CachedObject]:
        return self._list(Kind.BLOCK)

    def limits(self) -> Limits:
        return self._limits

    def memory(self, device: int) -> Memory | None:
        return self._memory.get(device)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)


def _turns(events: Sequence[Event], after: int) -> Iterator[tuple[int, list[Event]]]:
    """Yields turns, at least one for each second; a turn is a time and the new events up to that
    time."""
    if not events:
        return
    now, rest = events[0].time, list(events)
    end = events[-1].time + after
    while rest or now <= end:
        told = [event for event in rest if event.time <= now]
        del rest[: len(told)]
        yield now, told
        following = rest[0].time if rest else end + 1
        now = min(max(following, now + AT_ONCE), now + SECOND)


def rehearse(
    policy: Callable[[Caches], Policy],
    events: Sequence[Event],
    *,
    limits: Limits = LIMITS,
    memory: dict[int, Memory] | None = None,
    held: Collection[int] = (),
    seconds_after: float = 0.0,
) -> list[tuple[float, Decision]]:
    """Returns a policy's decisions in order, each with the seconds since the first event.

    A DefaultPolicy's clock returns the time in the recording, not the present time. The program
    permanently holds the handles in `held`. An eviction of an object outside `held` succeeds, and
    causes an event. `uses` is always 0, because the events do not report hits. `memory` maps each
    device to the result of `Caches.memory`. The policy continues for `seconds_after` seconds after
    the last event. Raises the exceptions that the policy raises.
    """
    library = _Library(limits, memory or {}, held)
    made = policy(library)
    if isinstance(made, DefaultPolicy):
        made.set_clock(lambda: library.now / SECOND)
    decided: list[tuple[float, Decision]] = []
    came_back: list[Event] = []
    for now, told in _turns(events, int(seconds_after * SECOND)):
        library.now = now
        for event in told:
            library.enter(event)
        told, came_back = [*came_back, *told], []
        for decision in made.decide(told, True) or ():
            decided.append(((now - events[0].time) / SECOND, decision))
            event = library.carry_out(decision)
            came_back += [event] if event else []
    return decided
