"""Other code calls HIP in a signal handler that interrupts the library at any instruction."""

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


@pytest.mark.parametrize("case", ("calls", "exit"))
def test_a_call_in_a_signal_handler_ends_the_word_at_any_instruction(path: Path, case: str) -> None:
    """The handler never waits for its own thread. The next call of other code settles the rest."""
    done = run_program(path, case, CHILDREN, **LAZY, MGPU_RT_MANAGER="off")
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > CHILDREN // 2
