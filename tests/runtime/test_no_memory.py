"""Each allocation of the library's fails in turn: the program runs as with stock, which has none.

HIP itself has memory. What the library cannot note it cannot keep, so such calls go to HIP.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.support import allocator
from tests.support.programs import STOCK, Outcome, Way, run, ways

PROGRAMS = (
    "forum",
    "churn",
    "layers",
    "overlap",
    "samename",
    "events",
    "globals",
    "many",
    "vecadd",
    "loopargs",
)
ROUNDS = 3
#: Of these the program sees which came, and in which order.
WORK = ("hipModuleLaunchKernel", "hipMemcpyAsync", "hipMemsetD32Async", "hipMemsetD16Async")


def play(program: str, way: Way, **changes: str) -> Outcome:
    iterations = None if program in ("events", "vecadd") else ROUNDS
    return run(program, 22, way, policy="builtin", iterations=iterations, **changes)


def work(outcome: Outcome) -> list[tuple[str, int]]:
    """What was submitted, in order, and what HIP answered."""
    return [(call["name"], call["result"]) for call in outcome.calls if call["name"] in WORK]


@functools.cache
def stock(program: str) -> Outcome:
    return play(program, Way(STOCK))


def assert_as_stock(program: str, outcome: Outcome) -> None:
    expected = stock(program)
    assert (outcome.signal, outcome.stdout, outcome.stderr) == (0, expected.stdout, "")
    assert work(outcome) == work(expected)
    assert outcome.log["misuse"] == []


def allocations(program: str, log: Path, **changes: str) -> int:
    """How many the library makes."""
    assert_as_stock(program, play(program, ways()["linked"], **allocator.settings(log), **changes))
    return allocator.read(log).count


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_allocation_may_fail(program: str, tmp_path: Path) -> None:
    count = allocations(program, tmp_path / "log")
    assert count > 8
    for number in range(1, count + 1):
        settings = allocator.settings(tmp_path / "log", fails=str(number))
        assert_as_stock(program, play(program, ways()["linked"], **settings))


@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_allocations_may_fail(program: str, cache: str, tmp_path: Path) -> None:
    settings = allocator.settings(tmp_path / "log", fails="1-")
    assert_as_stock(program, play(program, ways()["linked"], **settings, MGPU_RT_CACHE=cache))


def test_hip_is_found_although_the_search_lacks_memory_once(tmp_path: Path) -> None:
    count = allocations("forum", tmp_path / "log", MGPU_RT_HIP="")
    for number in range(1, count + 1):
        settings = allocator.settings(tmp_path / "log", fails=str(number))
        outcome = play("forum", ways()["linked"], **settings, MGPU_RT_HIP="")
        assert_as_stock("forum", outcome)


def test_a_thread_without_memory_chooses_its_device_once(tmp_path: Path) -> None:
    settings = allocator.settings(tmp_path / "log", fails="1-")
    for way in ({}, settings):
        outcome = play("forum", ways()["linked"], MGPU_RT_DEVICE="0", **way)
        assert [call["name"] for call in outcome.calls].count("hipSetDevice") == 1
