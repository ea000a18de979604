"""Other code calls HIP in a signal handler that interrupts the library, at 32 of its
instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.driver.test_word import LAZY
from tests.support.child import STUB
from tests.support.known import program, run_program

pytestmark = pytest.mark.check  # stops after each instruction


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = Path(__file__).with_name("interrupted.c").read_text()
    return program(tmp_path_factory.mktemp("interrupted"), text, "-D_GNU_SOURCE", str(STUB))


CHILDREN = 32


def interrupt(path: Path, case: str) -> None:
    """The children's numbers of instructions differ by at most one percent, so none ends before its
    interruption."""
    done = run_program(path, case, CHILDREN, **LAZY, MGPU_RT_MANAGER="off")
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == CHILDREN


def test_a_call_in_a_signal_handler_ends_the_word_at_32_instructions(path: Path) -> None:
    """The handler never waits for its own thread. The next call of other code settles the rest."""
    interrupt(path, "calls")


def test_a_call_in_a_signal_handler_at_exit_does_not_hang_at_32_instructions(path: Path) -> None:
    interrupt(path, "exit")
