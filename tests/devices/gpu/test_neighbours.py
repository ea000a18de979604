"""Two processes on one GPU: memory that one has freed is there for the other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.child import environment
from tests.support.known import program
from tests.support.patience import HANG, run_process

HERE = Path(__file__).resolve().parent
ROUNDS = 20


def _second(folder: Path, backend: str, by: str, **changes: str) -> subprocess.CompletedProcess:
    """Runs the two processes. The second process allocates by the library, or by HIP."""
    two = program(folder, (HERE / "two.c").read_text(), "-Wall", "-Wextra", "-Werror")
    env = environment(backend, MGPU_RT_MANAGER="off", **changes)
    return run_process([two, by, str(HANG)], env)


def test_the_program_runs_on_the_stub(tmp_path: Path) -> None:
    """On the stub, the processes share no memory."""
    done = _second(tmp_path, "stub", "library", HIPSTUB_MEMORY=str(100 << 20))
    assert done.stdout.startswith("79 MiB: there, attempts: 1"), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("by", ["library", "driver"])
def test_freed_memory_is_there_for_the_other_process(by: str, tmp_path: Path) -> None:
    for _ in range(ROUNDS):
        done = _second(tmp_path, "cuda", by)
        print(done.stdout, end="")
        assert done.returncode == 0, done.stdout + done.stderr
        assert by == "driver" or "attempts: 1," in done.stdout
