"""Random programs that detect the absence of one of the library's proofs.

Programs that run on one device and exit normally detect early reuse of freed memory. All other
programs detect faults that affect only unusual programs (the actions in
tests/proofs/random/edges.py, and the class `Ending` in model.py).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.proofs.programs import images
from tests.proofs.random import cases, model, programs, runner

PROGRAMS, AT_ONCE, ENDINGS, ACTIONS = 1200, 20, 40, 60
HANGS = 12  # seconds, after which a library that hangs counts as detected

Cases = Iterator[runner.Case]


def _several(
    device: runner.Device, fails: bool = False, side: runner.Side = runner.SIDES[0]
) -> Cases:
    """Generates cases of several programs for a side; if `fails` is true, one allocation by the
    library fails in each process."""
    source = random.Random(12)
    for number in range(PROGRAMS // AT_ONCE):
        drawn = [cases.program(source, ACTIONS) for _ in range(AT_ONCE)]
        which = str(1 + number) if fails else ""
        yield programs.Plan(device, drawn, (side,), False, False, fails=which).case()


def _ends(device: runner.Device, ending: model.Ending) -> Cases:
    """Generates programs that all end in the given way."""
    source = random.Random(12)
    other = tuple(one.word for one in model.Ending if one is not ending)
    for _ in range(ENDINGS):
        drawn = [cases.program(source, ACTIONS)]
        plan = programs.Plan(device, drawn, (), False, False, True, other)
        yield plan.case()


ALONE = runner.EXCLUSIVE[0]
#: for each kind of programs: the device, the library's options, and the function that generates the
#: cases
KINDS: dict[str, tuple[runner.Device, runner.Side, Callable[[], Cases]]] = {
    # Streams work only when a thread waits for them, so timing does not matter.
    "held": (runner.HELD, runner.SIDES[0], lambda: _several(runner.HELD)),
    "two": (runner.TWO, runner.SIDES[0], lambda: _several(runner.TWO)),
    "pins": (runner.PINS, ALONE, lambda: _several(runner.PINS, side=ALONE)),
    "fails": (runner.STUB, runner.SIDES[0], lambda: _several(runner.STUB, fails=True)),
    "ends": (runner.SOFTGPU, runner.SIDES[0], lambda: _ends(runner.SOFTGPU, model.Ending.HELD)),
}


def notice(kind: str, library: Path) -> None:
    """Requires that a program of this kind prints one result with the library and a different
    result with stock."""
    device, options, draw = KINDS[kind]
    images.write("gfx90a")
    side = dataclasses.replace(options, library=str(library.parent))
    for case in draw():
        stock = runner.play(case, runner.STOCK, device)
        assert runner.differences(stock, case, None) == []
        if runner.differences(runner.play(case, side, device, HANGS), case, stock):
            return
    pytest.fail("the programs differ nowhere")
