"""Random programs notice a library whose freed memory serves again too early."""

from __future__ import annotations

import dataclasses
import random

import pytest

from tests.random_driver import images, programs, runner, script
from tests.support.variants import Change, build

PROGRAMS, AT_ONCE = 600, 20

_WAITING = "csrc/runtime/cache/blocks_waiting.c"
_POOL = "csrc/runtime/cache/blocks_pool.c"

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
    "its_own_stream_alone": Change(
        _POOL, "return !stream || stream_has_passed(", "return true || stream_has_passed("
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_random_programs_notice_a_free_that_does_not_wait_for(name: str) -> None:
    """On streams that do nothing before somebody waits for them, so it is no matter of time."""
    images.write("gfx90a")
    library = build(f"driver-{name}", CHANGES[name], flags=("-O0", "-w"))
    side = dataclasses.replace(runner.SIDES[0], library=str(library.parent))
    source = random.Random(12)
    for _ in range(PROGRAMS // AT_ONCE):
        drawn = [
            (source.randbytes(4), [source.randbytes(script.ACTION) for _ in range(60)])
            for _ in range(AT_ONCE)
        ]
        case = programs.Plan(runner.HELD, drawn, (side,), late=False, linked=False).case()
        found = runner.problems(case, runner.HELD, [side])
        assert "stock" not in found
        if found:
            return
    pytest.fail(f"{PROGRAMS} programs differ nowhere")
