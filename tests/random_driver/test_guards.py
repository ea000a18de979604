"""Random programs notice libraries that lack a guard.

Programs of one device that end in peace notice freed memory that serves again too early. The others
here show what only programs at the edges notice (edges.py, Ending in model.py).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator

import pytest

from tests.random_driver import images, model, programs, runner, script
from tests.support.variants import Change, build

PROGRAMS, AT_ONCE = 1200, 20
HANGS = 12  # seconds: where a library hangs, it is noticed then

_WAITING = "csrc/runtime/cache/blocks_waiting.c"
_STREAMS = "csrc/runtime/cache/streams.h"
_POOL = "csrc/runtime/cache/blocks_pool.c"
_HANDLES = "csrc/runtime/base/handles.c"
_LIFECYCLE = "csrc/runtime/lifecycle.c"
_EVENTS = "csrc/runtime/cache/events.c"

#: By what a freed block does not wait for.
CHANGES = {
    "other_streams": Change(
        _WAITING,
        "    return block->wait_count ? SOME_AT_WORK : NONE_AT_WORK;",
        "    return NONE_AT_WORK;",
    ),
    "a_second_other_stream": Change(
        _WAITING, "i < block->wait_count; i++", "i < block->wait_count && i < 1; i++"
    ),
    "its_own_stream_beside_others": Change(
        _WAITING,
        "    if (block->stream && !is_past(block->stream, block->mark, stream))",
        "    if (false)",
    ),
    "streams_of_the_programs_own": Change(
        _STREAMS,
        "        PROOF_STEP(launch_elsewhere_is_noted, stream_note_untracked(ALL_DEVICES));",
        "        (void)0;",
    ),
    "its_own_stream_alone": Change(
        _POOL, "return !stream || stream_has_passed(", "return true || stream_has_passed("
    ),
}


def _side(name: str, *changes: Change) -> runner.Side:
    library = build(f"driver-{name}", *changes, flags=("-O0", "-w"))
    return dataclasses.replace(runner.SIDES[0], library=str(library.parent))


def _program(source: random.Random) -> programs.Bytes:
    actions = [source.randbytes(script.ACTION) for _ in range(60)]
    return source.randbytes(4), actions


@pytest.mark.parametrize("name", CHANGES)
def test_random_programs_notice_a_free_that_does_not_wait_for(name: str) -> None:
    """On streams that do nothing before somebody waits for them, so it is no matter of time."""
    images.write("gfx90a")
    side = _side(name, CHANGES[name])
    source = random.Random(12)
    for _ in range(PROGRAMS // AT_ONCE):
        drawn = [_program(source) for _ in range(AT_ONCE)]
        case = programs.Plan(runner.HELD, drawn, (side,), late=False, linked=False).case()
        found = runner.problems(case, runner.HELD, [side])
        assert "stock" not in found
        if found:
            return
    pytest.fail(f"{PROGRAMS} programs differ nowhere")


# ---- at the edges --------------------------------------------------------------------------------


def _several(device: runner.Device, fails: bool = False) -> Callable[[], Iterator[runner.Case]]:
    """Programs one after another; `fails`: an allocation of the library's does in each process."""

    def cases() -> Iterator[runner.Case]:
        source = random.Random(12)
        for number in range(PROGRAMS // AT_ONCE):
            drawn = [_program(source) for _ in range(AT_ONCE)]
            which = str(1 + number) if fails else ""
            yield programs.Plan(device, drawn, (), False, False, fails=which).case()

    return cases


def _ends(device: runner.Device, ending: model.Ending) -> Callable[[], Iterator[runner.Case]]:
    """Programs that end in one way; the others' heads are left out."""

    def cases() -> Iterator[runner.Case]:
        source = random.Random(12)
        other = tuple(one.word for one in model.Ending if one is not ending)
        for _ in range(40):
            plan = programs.Plan(device, [_program(source)], (), False, False, True, other)
            yield plan.case()

    return cases


@dataclasses.dataclass(frozen=True)
class Edge:
    """A library without a guard, and the programs that notice it."""

    cases: Callable[[], Iterator[runner.Case]]
    device: runner.Device
    changes: tuple[Change, ...]


EDGES = {
    "a_table_that_is_full": Edge(
        _several(runner.STUB),
        runner.STUB,
        (
            Change(
                _HANDLES,
                "map->table == &handle_no_table || map->count >= map->table->mask",
                "map->table == &handle_no_table",
            ),
            Change(
                _HANDLES,
                "2 * load_relaxed(&map->count) < table->mask ?",
                "2 * load_relaxed(&map->count) < table->mask || table->mask > 4000 ?",
            ),
        ),
    ),
    "an_entry_without_memory": Edge(
        _several(runner.STUB, fails=True),
        runner.STUB,
        (Change(_HANDLES, "    if (!entry)\n        return NULL;\n    memset", "    memset"),),
    ),
    "streams_that_go_back_while_one_is_held": Edge(
        _ends(runner.SOFTGPU, model.Ending.HELD),
        runner.SOFTGPU,
        (
            Change(
                _LIFECYCLE,
                "options.caches && hip_version >= HIP_7",
                "options.caches",
            ),
        ),
    ),
    "tables_of_threads_at_work_that_the_exit_frees": Edge(
        _ends(runner.STUB, model.Ending.BUSY),
        runner.STUB,
        (
            Change(
                _LIFECYCLE,
                "        caches_forget(ALL_DEVICES);\n",
                "        caches_forget(ALL_DEVICES);\n"
                "        for (struct thread *one = thread_list, *next; one; one = next) {\n"
                "            next = one->next;\n"
                "            memset(one, 0x5A, sizeof *one);\n"
                "        }\n",
            ),
            Change(
                _LIFECYCLE,
                '#include "cache/watch.h"\n',
                '#include "cache/thread.h"\n#include "cache/watch.h"\n',
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_random_programs_at_the_edges_notice(name: str) -> None:
    images.write("gfx90a")
    edge = EDGES[name]
    side = _side(name, *edge.changes)
    for case in edge.cases():
        stock = runner.play(case, runner.STOCK, edge.device)
        assert runner.differences(stock, case, None) == []
        if runner.differences(runner.play(case, side, edge.device, HANGS), case, stock):
            return
    pytest.fail("the programs differ nowhere")
