"""Random programs that notice a library without a proof.

Programs of one device that end quietly notice freed memory that is used again too early. The other
kinds find what only unusual programs notice (tests/proofs/random/edges.py, Ending in model.py).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from csrc.selftest import images
from tests.proofs.random import model, programs, runner, script

PROGRAMS, AT_ONCE, ENDINGS = 1200, 20, 40
HANGS = 12  # in seconds: after it a hanging library counts as noticed

Cases = Iterator[runner.Case]


def _program(source: random.Random) -> programs.Bytes:
    actions = [source.randbytes(script.ACTION) for _ in range(60)]
    return source.randbytes(4), actions


def _several(device: runner.Device, fails: bool = False) -> Cases:
    """Makes programs one after another; `fails`: an allocation of the library fails in each
    process."""
    source = random.Random(12)
    for number in range(PROGRAMS // AT_ONCE):
        drawn = [_program(source) for _ in range(AT_ONCE)]
        which = str(1 + number) if fails else ""
        yield programs.Plan(device, drawn, (), False, False, fails=which).case()


def _ends(device: runner.Device, ending: model.Ending) -> Cases:
    """Makes programs that end in one way; heads of others are left out."""
    source = random.Random(12)
    other = tuple(one.word for one in model.Ending if one is not ending)
    for _ in range(ENDINGS):
        plan = programs.Plan(device, [_program(source)], (), False, False, True, other)
        yield plan.case()


#: By the word in the table: the device, and the programs.
KINDS: dict[str, tuple[runner.Device, Callable[[], Cases]]] = {
    # Streams do nothing before a thread waits for them, so time plays no part.
    "held": (runner.HELD, lambda: _several(runner.HELD)),
    "two": (runner.TWO, lambda: _several(runner.TWO)),
    "stub": (runner.STUB, lambda: _several(runner.STUB)),
    "fails": (runner.STUB, lambda: _several(runner.STUB, fails=True)),
    "ends": (runner.SOFTGPU, lambda: _ends(runner.SOFTGPU, model.Ending.HELD)),
}


def notice(kind: str, library: Path) -> None:
    """A kind's programs have another result than with LLVM's own library."""
    device, cases = KINDS[kind]
    images.write("gfx90a")
    side = dataclasses.replace(runner.SIDES[0], library=str(library.parent))
    for case in cases():
        stock = runner.play(case, runner.STOCK, device)
        assert runner.differences(stock, case, None) == []
        if runner.differences(runner.play(case, side, device, HANGS), case, stock):
            return
    pytest.fail("the programs differ nowhere")
