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

_HANDLES = "csrc/runtime/base/handles.c"
_LIFECYCLE = "csrc/runtime/lifecycle.c"


def _side(name: str, *changes: Change) -> runner.Side:
    library = build(f"driver-{name}", *changes, flags=("-O0", "-w"))
    return dataclasses.replace(runner.SIDES[0], library=str(library.parent))


def _program(source: random.Random) -> programs.Bytes:
    actions = [source.randbytes(script.ACTION) for _ in range(60)]
    return source.randbytes(4), actions


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
