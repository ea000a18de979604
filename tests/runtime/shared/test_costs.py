"""The cost of a call does not depend on how many objects the process has.

bench/native/objects.c makes each kind of call beside few and beside many objects. Callgrind counts
the instructions, which are the same on a busy machine. On the stub, the instructions in HIP's
library show whether a call makes more calls of the driver.
"""

from __future__ import annotations

import functools

import pytest

from bench.measure import instructions
from bench.setup import native
from tests.support.suites import in_check

pytestmark = pytest.mark.skipif(
    not instructions.available(), reason="valgrind is missing: apt-get install valgrind"
)

FEW, MANY, CALLS = 12, 1100, 50
MOST = 1.5  # times the cost beside few objects

#: A call whose cost still grows: a free looks at each stream that HIP has for the library, because
#: the stream may be at work.
GROWING = ("allocate, free, streams",)


@functools.cache
def profiles(number: int, exclusive: str) -> dict[str, instructions.Profile]:
    return instructions.count_objects(number, CALLS, MGPU_RT_EXCLUSIVE=exclusive)


def check(many: int, exclusive: str) -> None:
    few, grown = profiles(FEW, exclusive), profiles(many, exclusive)
    for kind, before in few.items():
        after = grown[kind]
        assert before.per_iteration(native.RUNTIME.name) > 20, kind
        assert after.per_iteration(native.STUB.name) <= MOST * before.per_iteration(
            native.STUB.name
        ), kind
        if kind in GROWING:
            continue
        assert after.system_calls <= before.system_calls, kind
        assert after.per_iteration() <= MOST * before.per_iteration(), kind


@pytest.mark.parametrize("exclusive", in_check(("on", "off"), lambda word: word == "off"))
def test_costs_do_not_grow(exclusive: str) -> None:
    check(MANY, exclusive)


@pytest.mark.check
def test_costs_do_not_grow_to_ten_thousand(exclusive: str = "on") -> None:
    check(9000, exclusive)


@pytest.mark.check
def test_a_free_a_miss_and_an_eviction_cost_no_more_beside_many_blocks() -> None:
    """Each free is beyond the limit of 64 bytes, so HIP frees a block and allocates the next."""
    kind, limit = "free, allocate, held blocks", {"MGPU_RT_MEMORY_LIMIT": "64"}
    few, many = (
        instructions.count_objects(number, 200, kind=kind, **limit)[kind].per_iteration()
        for number in (FEW, MANY)
    )
    assert many <= MOST * few, (few, many)


@pytest.mark.check
def test_held_modules_beyond_the_limit_cost_no_more() -> None:
    """A search for modules to evict visits all modules, so the searches become rarer as modules
    become more."""
    kind, limit = "first load, held modules of an image", {"MGPU_RT_MODULE_LIMIT": "64K"}
    few, many = (
        instructions.count_objects(number, 200, kind=kind, **limit)[kind].per_iteration()
        for number in (FEW, MANY)
    )
    assert many <= MOST * few
