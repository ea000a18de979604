"""Runs small and random programs with the runtime that each compiler has built. Some builds have
sanitizers that end the process when they find a fault.

The options of the sanitizers, and their reasons:

* `detect_leaks=0`: the library intentionally keeps memory until exit (test_leaks.py counts objects
  that must not accumulate), and AMD's HIP and Python leak more.
* `ignore_noninstrumented_modules=1`: the thread sanitizer does not see the synchronisation inside
  AMD's HIP and Python, which are not instrumented.
* `handle_segv=0`, `use_sigaltstack=0`: AMD's runtime installs signal handlers and signal stacks.
* `MGPU_RT_TEST_SYMBOLS=shared`: sanitizers refuse RTLD_DEEPBIND.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.programs import images
from tests.proofs.random import cases, runner
from tests.support.child import BUILD, environment
from tests.support.compiled import RUNTIME
from tests.support.images import code_object
from tests.support.patience import run_process

pytestmark = pytest.mark.sanitize

SANITIZERS = ("gcc-address", "gcc-thread", "clang-address", "clang-thread")
KINDS = ("gcc", "clang", *SANITIZERS)
MODES = ("plain", "thread", "threads", "fork-before", "fork-after", "dlclose", "late")
#: In mode `late`, the program makes its last call after HIP's end, and the library prints
#: AFTER_EXIT.
AFTER_EXIT = "after HIP's exit handlers"
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:use_sigaltstack=0:abort_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1",
    "MGPU_RT_TEST_SYMBOLS": "shared",
}
PROGRAMS = 100  # random programs of a kind on a device
STUBS = (runner.STUB, runner.REUSE, runner.TWO)
#: The thread sanitizer does not work with AMD's whole HIP, because AMD's HIP needs the address
#: space.
DEVICES = {"address": (*STUBS, runner.SMALL, runner.SOFTGPU), "thread": STUBS}


def _run(kind: str, program: str, *arguments: str, **changes: str) -> None:
    """Runs a program of tests/support/hosts, which must print "ok" and no unexpected lines."""
    built = BUILD / "sanitize" / kind
    hip = str(built / "hip" / "libamdhip64.so.5")
    env = environment(MGPU_RT_HIP=hip, MGPU_RT_MANAGER="off", **OPTIONS, **changes)
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


@pytest.mark.parametrize(
    ("kind", "device"),
    [(kind, device) for kind in SANITIZERS for device in DEVICES[kind.partition("-")[2]]],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_random_programs_are_clean_under_sanitizers(
    kind: str, device: runner.Device, tmp_path: Path
) -> None:
    images.write("gfx90a")
    built = f"build/sanitize/{kind}"
    sides = [
        runner.Side(side.name, built, (*OPTIONS.items(), *side.options), players=built)
        for side in runner.SIDES[:2]
    ]
    for path in cases.write(PROGRAMS, tmp_path, device, seed=1, ends=PROGRAMS // 3):
        assert runner.problems(runner.Case.read(path.read_text()), device, sides) == {}, path
