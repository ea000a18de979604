"""Interrupts a register and an unregister at each step, while the library caches registrations.

At a step, a signal handler unmaps memory, the registered pages change, or the program takes the
library's descriptor. The program registered_steps.c runs with a stub of HIP that keeps using the
pages of a registration, as a GPU does.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.child import ROOT
from tests.support.known import program, run_program

HERE = Path(__file__).parent
SOURCES = ROOT / "tests" / "support" / "hosts" / "registered"
NO_SUCH_CALL = 3


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = (HERE / "registered_steps.c").read_text()
    flags = ("-D_GNU_SOURCE", f"-I{SOURCES}", str(SOURCES / "memory.c"))
    return program(tmp_path_factory.mktemp("steps"), text, *flags)


def run(path: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    settings = {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_MANAGER": "off", **variables}
    return run_program(path, *words, HIPSTUB_PINS="1", **settings)


@pytest.mark.check
def test_a_handler_may_unmap_memory_at_each_instruction(path: Path) -> None:
    """The thread that reads events must not wait for the interrupted thread: until an event is
    read, the kernel keeps the handler waiting."""
    done = run(path, "signal")
    assert done.returncode == 0, done.stderr


@pytest.mark.check
@pytest.mark.parametrize("case", ["dropped", "mapped"])
def test_pages_may_change_at_any_instruction(path: Path, case: str) -> None:
    done = run(path, case, 131)
    assert done.returncode == 0, done.stderr


@pytest.mark.check
def test_a_program_may_take_the_descriptor_before_each_system_call(path: Path) -> None:
    """The library must not read the program's pipe, and must know that its watch is lost."""
    count = 0
    while (done := run(path, "closed", count)).returncode == 0:
        count += 1
    assert done.returncode == NO_SUCH_CALL, (count, done.stderr)
    assert count > 10


@pytest.mark.check
def test_a_userfaultfd_of_the_program_is_not_taken_for_the_watch(path: Path) -> None:
    log = path.with_suffix(".json")
    done = run(path, "replaced", HIPSTUB_LOG=str(log))
    assert done.returncode == 0, done.stderr
    assert json.loads(log.read_text())["counts"]["hipHostRegister"] == 4
