"""The library calls no allocator while it holds a lock that the library's fork handlers take.

An allocator has its own lock, which a fork also takes. The allocator's fork handlers may run first.
A thread that holds the library's lock and allocates then waits until the fork ends. The fork waits
for the library's lock, so the thread and the fork wait for each other.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import allocator
from tests.support.child import ROOT, environment
from tests.support.patience import run_process
from tests.support.programs import run, ways

PROGRAMS = ("churn", "overlap", "events", "many")

#: Creates many objects of each kind in several threads, and releases all of them. Before that, only
#: one stream is in use, whose pool then has more blocks than its table holds.
_MANY = """
import threading
from tests.support.child import Mgpu
runtime = Mgpu()

def work():
    streams = [runtime.StreamCreate() for _ in range(40)]
    events = [runtime.EventCreate() for _ in range(300)]
    for event, stream in zip(events, streams):
        runtime.EventRecord(event, stream)
    for _ in range(2500):
        runtime.MemAlloc(256, streams[0], False)
    blocks = [runtime.MemAlloc(256 * size, streams[0], False) for size in range(1, 400)]
    for block, stream in zip(blocks, streams * 10):
        runtime.Memset32(block, 1, 8, stream)
        runtime.MemFree(block, streams[0])
    for event in events:
        runtime.EventDestroy(event)
    for stream in streams:
        runtime.StreamDestroy(stream)

stream = runtime.StreamCreate()
for block in [runtime.MemAlloc(256 * size, stream, False) for size in range(1, 400)]:
    runtime.MemFree(block, stream)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
runtime.lib.mgpu_rt_empty_cache()
"""


def assert_clean(log: Path) -> None:
    seen = allocator.read(log)
    assert seen.forks  # the lock of the tables
    assert seen.count > 0
    assert seen.under_locks_of_forks == {}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_allocate_under_no_lock(program: str, recorded: bool, tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcome = run(
        program,
        22,
        ways()["linked"],
        policy="builtin",
        iterations=None if program == "events" else 40,
        stats=recorded,
        **allocator.settings(log),
    )
    assert (outcome.signal, outcome.stderr) == (0, "")
    assert_clean(log)


@pytest.mark.check
def test_many_kept_objects_are_allocated_under_no_lock(tmp_path: Path) -> None:
    log = tmp_path / "log"
    env = environment(MGPU_RT_MANAGER="off", **allocator.settings(log))
    done = run_process([sys.executable, "-c", _MANY], env, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert_clean(log)
