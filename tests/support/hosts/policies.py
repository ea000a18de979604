"""Policies for the tests of MGPU_RT_POLICY. The policies write to policy.log, in the first
directory of PYTHONPATH."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from mgpu_rt.manager import Caches, Decision, Evict, Kind, Pin


def note(**what: object) -> None:
    """Writes a line of JSON for the test."""
    directory = os.environ["MGPU_RT_POLICY_PATH"].split(os.pathsep)[0]
    with open(Path(directory, "policy.log"), "a", encoding="utf-8") as log:
        log.write(json.dumps(what) + "\n")


class PinAll:
    """Pins every module and writes to the log: nothing is evicted."""

    turns = 0

    def decide(self, caches: Caches) -> Iterable[Decision]:
        self.turns += 1
        note(
            modules=[list(module) for module in caches.modules],
            streams=len(caches.streams),
            blocks=[list(block) for block in caches.blocks],
            limits=caches.limits.module_bytes,
        )
        for module in caches.modules:
            yield Pin(module.handle)


class EvictAll(PinAll):
    """Evicts every object that it can, and objects that do not exist."""

    def decide(self, caches: Caches) -> Iterable[Decision]:
        yield Evict(Kind.MODULE, 0xDEAD)
        yield Evict(Kind.STREAM, 0)
        yield Evict(Kind.BLOCK, 2**64 - 1)
        yield Pin(0xDEAD)
        note(evicts=True)
        for kind, things in zip(Kind, caches[:3], strict=True):
            for thing in things:
                yield Evict(kind, thing.handle)


class Chatty(PinAll):
    """Prints more lines in its first turn than fit into one answer."""

    def decide(self, caches: Caches) -> Iterable[Decision]:
        if self.turns == 0:
            print("to the program's stderr", file=sys.stderr)
            for number in range(300):
                print("line", number)
            print("said")
        self.turns += 1
        return ()


class RaisesAtOnce:
    def __init__(self) -> None:
        raise ValueError("no policy today")


class RaisesLater(PinAll):
    def decide(self, caches: Caches) -> Iterable[Decision]:
        raise ZeroDivisionError("what is one by nothing?")


class Nonsense(PinAll):
    def decide(self, caches: Caches) -> Iterable[Decision]:
        return ["evict everything"]  # type: ignore[list-item]


class Exits(PinAll):
    def decide(self, caches: Caches) -> Iterable[Decision]:
        sys.exit(3)


class Dies(PinAll):
    def decide(self, caches: Caches) -> Iterable[Decision]:
        os._exit(3)


class Hangs(PinAll):
    def decide(self, caches: Caches) -> Iterable[Decision]:
        note(hangs=True)
        time.sleep(3600)
        return ()


class HoldsTheGil(PinAll):
    """A policy that holds the GIL in one bytecode that does not end."""

    def decide(self, caches: Caches) -> Iterable[Decision]:
        note(hangs=True)
        sum(range(10**15))
        return ()


class DecidesWithoutEnd(PinAll):
    """Evicts every stream many times, so that the library carries out decisions at any time."""

    def decide(self, caches: Caches) -> Iterable[Decision]:
        note(decides=True)
        for _ in range(40_000):
            for stream in caches.streams:
                yield Evict(Kind.STREAM, stream.handle)
