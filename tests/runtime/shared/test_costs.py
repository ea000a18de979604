"""The cost of a call does not depend on how many objects the process has.

object_costs.c makes each kind of call beside few and beside many objects. Callgrind counts
the instructions, which are the same on a busy machine. On the stub, the instructions in HIP's
library show whether a call makes more calls of the driver.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from bench.setup import native
from tests.support import instructions
from tests.support.suites import in_check, sampled

pytestmark = pytest.mark.skipif(
    not instructions.available(), reason="valgrind is missing: apt-get install valgrind"
)

FEW, MANY, CALLS = 12, 1100, 50
MOST = 1.5  # times the cost beside few objects


def count_objects(
    number: int, calls: int, *, kind: str = "", **variables: str
) -> dict[str, instructions.Profile]:
    """Profiles calls beside `number` objects of each kind (object_costs.c), on the stub. A
    `kind` profiles only the calls of this kind."""
    native.need(native.RUNTIME, native.STUB)
    env = native.stub_environment(
        **{
            "MGPU_RT_MANAGER": "off",
            "MGPU_RT_MODULE_LIMIT": "64G",
            "MALLOC_TOP_PAD_": str(64 << 20),  # so the host's heap grows before the measurement
            **variables,
        }
    )
    program = native.program("object_costs", folder=Path(__file__).parent)
    kinds = [kind] if kind else native.run_json([program, "kinds"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "callgrind.out")
        # Without --skip-plt=no, callgrind also counts earlier jumps through the linkage table.
        options = [
            *instructions.CALLGRIND,
            "--skip-plt=no",
            *instructions.MEASURED,
            f"--callgrind-out-file={out}",
        ]
        words = [program, native.RUNTIME, number, calls, *([kind] if kind else [])]
        native.run(["valgrind", *options, *words], env)
        # Each call of `measured` writes a file, so the first file is that of the first kind.
        texts = [Path(f"{out}.{place}").read_text() for place in range(1, len(kinds) + 1)]
    return {kind: instructions.parse(text, calls) for kind, text in zip(kinds, texts, strict=True)}


@functools.cache
def profiles(number: int, exclusive: str, size: int = 256) -> dict[str, instructions.Profile]:
    return count_objects(number, CALLS, MGPU_RT_EXCLUSIVE=exclusive, BYTES=str(size))


def check(many: int, exclusive: str, size: int = 256) -> None:
    few, grown = (profiles(number, exclusive, size) for number in (FEW, many))
    for kind, before in few.items():
        after = grown[kind]
        assert before.per_iteration(native.RUNTIME.name) > 20, kind
        assert after.per_iteration(native.STUB.name) <= MOST * before.per_iteration(
            native.STUB.name
        ), kind
        # The test's own threads may sleep once at each of two barriers.
        slept = 4 if "two threads" in kind else 0
        assert after.system_calls <= before.system_calls + slept, kind
        assert after.per_iteration() <= MOST * before.per_iteration(), kind


@pytest.mark.check
@pytest.mark.parametrize("exclusive", in_check(("on", "off"), lambda word: word == "off"))
def test_costs_do_not_grow(exclusive: str) -> None:
    check(MANY, exclusive)


@pytest.mark.check
@pytest.mark.parametrize("exclusive", ("on", "off"))
def test_a_second_thread_adds_at_most_half(exclusive: str) -> None:
    """A thread creates a stream, allocates, launches, waits, frees and destroys, as lowered
    programs do. A second thread holds such objects, and has waited for its work."""
    one, two = (
        profiles(FEW, exclusive)[f"own objects, {n}"] for n in ("one thread", "two threads")
    )
    assert two.per_iteration() <= MOST * one.per_iteration()
    assert two.per_iteration(native.STUB.name) <= MOST * one.per_iteration(native.STUB.name)


def test_a_hit_compares_the_bytes_of_a_bundle_once() -> None:
    """The bundle has 64 KiB on the heap. A comparison takes at most 5 instructions for 16 bytes."""
    hit = profiles(FEW, "on")["load, a bundle on the heap"]
    assert hit.system_calls == 0
    assert hit.per_iteration() <= 65536 / 16 * 5 + 1000


def test_a_stream_that_frees_one_block_costs_little() -> None:
    """MLIR leaves streams behind, so a program may free one block on each of many streams. A pool
    that clears its lists at once took 8,100 instructions here."""
    assert profiles(FEW, "on")["first free on a stream, streams"].per_iteration() <= 3000


@pytest.mark.check
def test_costs_do_not_grow_to_ten_thousand(exclusive: str = "on") -> None:
    check(9000, exclusive, 1024)


@pytest.mark.nightly
@pytest.mark.parametrize("exclusive", ("on", "off"))
def test_costs_do_not_grow_to_a_hundred_thousand(exclusive: str) -> None:
    check(100_000, exclusive)


#: Calls beside idle blocks of 256 bytes, and how many frees the limit allows before one evicts a
#: block (None: the device's limit). object_costs.c frees 16 blocks first.
FREE, MISS = "free, idle blocks", "allocate a new size, idle blocks"
BESIDE_IDLE_BLOCKS = {
    "a free below the limit": (FREE, None),
    "a free at the limit": (FREE, 16 + CALLS),
    "a free that evicts": (FREE, 0),
    "an allocation that misses": (MISS, None),
    "an allocation that misses, beyond the limit": (MISS, 0),
    "another stream's block": ("allocate on another stream, idle blocks", None),
}


@pytest.mark.parametrize("streams", sampled((1, 256), (256,)))
@pytest.mark.parametrize("case", BESIDE_IDLE_BLOCKS)
def test_a_call_costs_no_more_beside_many_idle_blocks(case: str, streams: int) -> None:
    """The idle blocks were freed on one stream, or on many."""
    kind, frees = BESIDE_IDLE_BLOCKS[case]

    def cost(number: int) -> float:
        variables = {"STREAMS": str(streams)}
        if frees is not None:
            variables["MGPU_RT_MEMORY_LIMIT"] = str(256 * (number + frees))
        return count_objects(number, CALLS, kind=kind, **variables)[kind].per_iteration()

    assert cost(9000) <= MOST * cost(FEW)


HELD, LOAD = "free, allocate, held blocks", "first load, held modules of an image"
ALONE = {"MGPU_RT_EXCLUSIVE": "on"}
#: Kinds of calls, their variables, the number of many objects, and of calls.
COMPARED = {
    # A new stream ends postponed waits if the program holds another stream.
    "lazy": ("first free on a stream, streams", {**ALONE, "MGPU_RT_SYNC": "lazy"}, MANY, CALLS),
    # Beside 1,000 blocks, each free is the first on its stream that finds no empty place in the
    # pool.
    "a full pool": (FREE, {**ALONE, "STREAMS": "256"}, 1000, CALLS),
    # Few objects exceed these limits, too. With 64 bytes, HIP frees a block and allocates the next
    # at each free. With 2 KB, few of the blocks are idle, and one of 8 frees counts them.
    "a limit of no block": (HELD, {"MGPU_RT_MEMORY_LIMIT": "64"}, MANY, 200),
    "a limit of few blocks": (HELD, {"MGPU_RT_MEMORY_LIMIT": "2K"}, MANY, 200),
    # A search for modules to evict visits all modules, so the searches become rarer as modules
    # become more.
    "a limit of modules": (LOAD, {"MGPU_RT_MODULE_LIMIT": "64K"}, MANY, 200),
    # The program holds 400 MB. Each free then compares idle bytes with the limit, which adds 106
    # instructions to 221, beside 100,000 blocks as beside 80,000.
    "held memory": (HELD, {**ALONE, "BYTES": "4096"}, 100_000, CALLS),
}


@pytest.mark.parametrize("case", sampled(COMPARED, [*COMPARED][:-1:2]))
def test_a_call_costs_no_more_beside_many_objects(case: str) -> None:
    kind, variables, most, calls = COMPARED[case]
    few, many = (
        count_objects(number, calls, kind=kind, **variables)[kind].per_iteration()
        for number in (FEW, most)
    )
    assert many <= MOST * few, (few, many)
