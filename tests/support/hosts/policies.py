"""Policies for the tests of MGPU_RT_POLICY. The policies write to policy.log, in the first
directory of PYTHONPATH."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from mgpu_rt.manager import Caches, Decision, Event, Evict, Kind, Limit, Pin


def note(**what: object) -> None:
    """Writes a line of JSON for the test."""
    directory = os.environ["MGPU_RT_POLICY_PATH"].split(os.pathsep)[0]
    with open(Path(directory, "policy.log"), "a", encoding="utf-8") as log:
        log.write(json.dumps(what) + "\n")


class PinAll:
    """Pins every module and writes to the log: nothing is evicted."""

    def __init__(self, caches: Caches) -> None:
        self.caches = caches
        self.turns = 0

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        self.turns += 1
        note(
            events=[[e.what.name, e.handle, e.bytes, e.device] for e in events],
            complete=complete,
            modules=len(self.caches.modules()),
            streams=len(self.caches.streams()),
            blocks=[list(block) for block in self.caches.blocks()],
            limits=self.caches.limits().module_bytes,
            memory=list(self.caches.memory(0) or ()),
        )
        for module in self.caches.modules():
            yield Pin(module.handle)


class EvictAll(PinAll):
    """Evicts every module that it can, and modules that do not exist."""

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        yield Evict(Kind.MODULE, 0xDEAD)
        yield Evict(Kind.STREAM, 0)
        yield Evict(Kind.BLOCK, 2**64 - 1)
        yield Pin(0xDEAD)
        note(evicts=True)
        for kind, things in (
            (Kind.MODULE, self.caches.modules()),
            (Kind.STREAM, self.caches.streams()),
            (Kind.BLOCK, self.caches.blocks()),
        ):
            for thing in things:
                yield Evict(kind, thing.handle)


class Limits(PinAll):
    """Limits the cache to one stream and a little memory."""

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        yield Limit(Kind.STREAM, 1)
        yield Limit(Kind.MODULE, 1 << 20)
        yield Limit(Kind.BLOCK, 1 << 20, 0)
        yield Limit(Kind.BLOCK, 1 << 20, 99)
        limits = self.caches.limits()
        note(module_bytes=limits.module_bytes, streams=limits.streams, memory=limits.memory)


class Chatty(PinAll):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        if self.turns == 0:
            print("to nobody, unless asked")
            print("to the program's stderr", file=sys.stderr)
            self.caches.say("said")
        self.turns += 1
        return ()


class RaisesAtOnce:
    def __init__(self, caches: Caches) -> None:
        raise ValueError("no policy today")


class RaisesLater(PinAll):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        raise ZeroDivisionError("what is one by nothing?")


class Nonsense(PinAll):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        return ["evict everything"]  # type: ignore[list-item]


class Exits(PinAll):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        sys.exit(3)


class Dies(PinAll):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        os._exit(3)


class Hangs(PinAll):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        note(hangs=True)
        time.sleep(3600)
        return ()


class HoldsTheGil(PinAll):
    """A policy that holds the GIL in one bytecode that does not end."""

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        note(hangs=True)
        sum(range(10**15))
        return ()


class Threads(PinAll):
    """Queries the library from many threads at once."""

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        threads = [threading.Thread(target=self.caches.modules) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        note(threads=len(threads))
        return ()


class AsksForEver(PinAll):
    """Queries the library and evicts streams at every moment, even at the end of the program."""

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        note(asks=True)
        while True:
            self.caches.memory(0)
            for stream in self.caches.streams():
                yield Evict(Kind.STREAM, stream.handle)
