"""Rehearses a policy on a recorded list of events, without a program."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from mgpu_rt.manager import (
    Caches,
    Decision,
    DefaultPolicy,
    Event,
    EventKind,
    Evict,
    Kind,
    Limit,
    Memory,
    Pin,
)
from mgpu_rt.manager.rehearsal import read, rehearse
from tests.python.launches import EXAMPLES
from tests.support.child import Mgpu, environment, in_child
from tests.support.images import code_object
from tests.support.patience import HANG, wait_until

SECOND = 1_000_000_000


def event(what: EventKind, handle: int, seconds: float = 0, size: int = 100) -> Event:
    return Event(what, handle, size, 0, int((1000 + seconds) * SECOND))


class Looks:
    """A policy that records, for each call of `decide`, the events' handles and the handles of the
    library's streams."""

    seen: list[tuple[list[int], list[int]]]

    def __init__(self, caches: Caches) -> None:
        self.caches = caches
        Looks.seen = []

    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        assert complete
        streams = [stream.handle for stream in self.caches.streams()]
        Looks.seen.append(([e.handle for e in events], streams))
        return ()


def test_events_arrive_in_their_time_and_once_a_second() -> None:
    created = EventKind.STREAM_CREATED
    events = [event(created, 1), event(created, 2, 0.01), event(created, 3, 1.5)]
    events.append(event(EventKind.STREAM_DESTROYED, 1, 1.6))
    assert rehearse(Looks, events, seconds_after=1) == []
    told = [handles for handles, _ in Looks.seen if handles]
    assert told == [[1], [2], [3], [1]]
    assert [] in [handles for handles, _ in Looks.seen]
    assert Looks.seen[-1][1] == [2, 3]


class EvictsAll(Looks):
    def decide(self, events: Sequence[Event], complete: bool) -> Iterable[Decision]:
        Looks.seen.append(([e.handle for e in events], []))
        yield Limit(Kind.STREAM, 7)
        assert self.caches.limits().streams == 7
        for stream in self.caches.streams():
            yield Evict(Kind.STREAM, stream.handle)


def test_decisions_are_carried_out_and_come_back() -> None:
    """The policy keeps objects that the program holds."""
    events = [event(EventKind.STREAM_CREATED, 1), event(EventKind.STREAM_CREATED, 2)]
    decided = rehearse(EvictsAll, events, held={2}, seconds_after=1)
    assert (0.0, Evict(Kind.STREAM, 1)) in decided
    assert [handles for handles, _ in Looks.seen[:2]] == [[1, 2], [1]]
    assert [d for _, d in decided].count(Evict(Kind.STREAM, 1)) == 1
    assert [d for _, d in decided].count(Evict(Kind.STREAM, 2)) > 1


def test_the_policy_that_ships_goes_by_the_time_of_the_events() -> None:
    """The policy evicts blocks that were unused for ten seconds, if the device is short of
    memory."""
    events = [event(EventKind.BLOCK_ALLOCATED, 1, 0, 1 << 20)]
    short = {0: Memory(10, 1000)}
    decided = rehearse(DefaultPolicy, events, memory=short, seconds_after=60)
    assert [d for _, d in decided] == [Evict(Kind.BLOCK, 1)]
    assert decided[0][0] >= 10
    assert rehearse(DefaultPolicy, events, memory=short, seconds_after=5) == []


def test_a_damaged_event_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text('mgpu_rt: hello\nmgpu_rt: {"what": "NOTHING", "handle": 1}\n')
    with pytest.raises(ValueError, match="events:2 is not an event"):
        read(path)


@in_child(policies=("python",), MGPU_RT_POLICY="mgpu_rt.manager.rehearsal:Record")
def test_a_programs_events_are_recorded_and_read(mgpu: Mgpu) -> None:
    mgpu.StreamDestroy(mgpu.StreamCreate())
    mgpu.ModuleUnload(mgpu.load(mgpu.image(code_object("forum"))))
    with tempfile.NamedTemporaryFile("w") as file:

        def told() -> bool:
            file.write(mgpu.stderr())
            file.flush()
            return {EventKind.MODULE_LOADED, EventKind.STREAM_CREATED} <= {
                e.what for e in read(file.name)
            }

        assert wait_until(told)
        assert all(e.handle and e.time for e in read(file.name))


def test_the_example_says_what_it_would_decide(tmp_path: Path) -> None:
    path = tmp_path / "events"
    listed = [
        event(EventKind.MODULE_LOADED, 5, 0, 1 << 20),
        event(EventKind.MODULE_LOADED, 6, 0.5, 100),
    ]
    listed += [event(EventKind.STREAM_CREATED, handle, 1) for handle in (7, 8)]
    lines = [json.dumps({**e._asdict(), "what": e.what.name}) for e in listed]
    path.write_text("\n".join(f"mgpu_rt: {line}" for line in lines))
    done = subprocess.run(
        [sys.executable, EXAMPLES / "policy.py", path],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.stdout.splitlines() == [
        f"0.00 s: {Pin(5)}",
        f"1.00 s: {Evict(Kind.STREAM, 8)}",
        "2 decisions",
    ], done.stderr


@in_child(policies=("python",), MGPU_RT_POLICY="policy:KeepLarge", PYTHONPATH=str(EXAMPLES))
def test_the_example_is_a_policy(mgpu: Mgpu) -> None:
    """The example keeps one of two idle streams."""
    for stream in [mgpu.StreamCreate(), mgpu.StreamCreate()]:
        mgpu.StreamDestroy(stream)
    assert wait_until(lambda: mgpu.count("hipStreamDestroy") == 1)
    assert "failed" not in mgpu.stderr()
