"""Runs small C programs with the runtime and the stub of HIP. Each compiler builds the runtime;
some builds have sanitizers that abort when they find a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.child import BUILD, environment
from tests.support.compiled import RUNTIME
from tests.support.images import code_object
from tests.support.patience import run_process

pytestmark = pytest.mark.sanitize

KINDS = ("gcc", "clang", "address", "thread")
MODES = ("plain", "thread", "threads", "fork-before", "fork-after", "dlclose", "late")
#: In mode `late`, the program makes its last call after HIP's end, and the library prints
#: AFTER_EXIT.
AFTER_EXIT = "after HIP's exit handlers"
FOUND = 66


def _run(kind: str, program: str, *arguments: str, **changes: str) -> None:
    """Runs a program of tests/support/hosts, which must print "ok" and no unexpected lines."""
    built = BUILD / "sanitize" / kind
    env = environment(
        MGPU_RT_HIP=str(built / "libamdhip64.so.5"),
        MGPU_RT_MANAGER="off",
        ASAN_OPTIONS=f"exitcode={FOUND}:detect_leaks=0",
        TSAN_OPTIONS=f"exitcode={FOUND}:halt_on_error=1",
        UBSAN_OPTIONS="print_stacktrace=1",
        **changes,
    )
    done = run_process([built / program, built / RUNTIME, *arguments], env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "ok", done.stdout
    assert [line for line in done.stderr.splitlines() if AFTER_EXIT not in line] == []


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "forum.hsaco"
    path.write_bytes(code_object("forum"))
    return path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_launches_are_clean_under_sanitizers(kind: str, mode: str, image: Path) -> None:
    _run(kind, "host", str(image), "test_func", mode)


@pytest.mark.parametrize("mode", ["plain", "threads", "fork-after"])
@pytest.mark.parametrize("kind", KINDS)
def test_recorded_launches_are_clean_under_sanitizers(
    kind: str, mode: str, image: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    _run(kind, "host", str(image), "test_func", mode, MGPU_RT_TRACE=str(trace))
    assert trace.stat().st_size
