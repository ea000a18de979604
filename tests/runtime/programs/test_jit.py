"""Tests MLIR's JIT in one process with HIP: the process contains two LLVMs, and the results are
right.

mlir-runner compiles a program just in time, and test_programs.py lowers the program ahead of time:
output and driver calls must be equal.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.runtime.programs.test_programs import PROGRAMS, printed, rounds
from tests.support import lower
from tests.support.child import library
from tests.support.command import COMMAND
from tests.support.compiled import compile_c
from tests.support.printing import print_library
from tests.support.programs import Outcome, Way, execute, run, run_environment
from tests.support.sources import SOURCES
from tests.support.suites import in_check

RUNNER_UTILS = [
    lower.runner(22).parent.parent / "lib" / f"libmlir_{name}.so.22.1"
    for name in ("runner_utils", "c_runner_utils")
]
COMPILER = "libamd_comgr.so.2"
#: The programs that `make test` runs just in time; `make check` runs all.
OFTEN = ("churn", "globals", "forkjoin")

#: Writes /proc/self/maps to the file named by MAPS, when the process ends.
WRITE_MAPS = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((destructor)) static void write_maps(void) {
    FILE *in = fopen("/proc/self/maps", "r"), *out = fopen(getenv("MAPS"), "w");
    for (int c; (c = fgetc(in)) != EOF;)
        fputc(c, out);
    fclose(out);
}
"""

#: A library that defines malloc, as a program's allocator does.
ALLOCATOR = """
#include <stddef.h>
void *__libc_malloc(size_t size);
void *malloc(size_t size) { return __libc_malloc(size); }
"""


def jit(
    program: str,
    llvm: int,
    *,
    runtime: Path | None = None,
    helpers: list[Path] | None = None,
    wrap: tuple[str, ...] = (),
    policy: str = "python",
    stats: bool = False,
    **changes: str,
) -> Outcome:
    """Runs a program on the emulated device with the JIT runner of an LLVM release."""
    compiled = lower.lower_to_llvm_dialect(SOURCES[program], llvm, iterations=rounds(program))
    libraries = [runtime or library(), *(helpers or [print_library()])]
    command = [*wrap, str(lower.runner(llvm)), str(compiled), "-e", "main"]
    command += ["--entry-point-result=void", *(f"--shared-libs={path}" for path in libraries)]
    env = run_environment(Way(library()), "softgpu", llvm, policy, **changes)
    return execute(command, env, stats=stats)


def good(outcome: Outcome) -> None:
    assert (outcome.signal, outcome.stderr) == (0, "")


# ---- results and counts --------------------------------------------------------------------------


#: `make check` runs each program with one release.
RUNS = [run for number, run in enumerate(PROGRAMS) if number % 2 == 0 or run[1] == 22]


@pytest.mark.parametrize(
    ("program", "llvm"), in_check(RUNS, lambda program, llvm: llvm < 22 or program not in OFTEN)
)
def test_jit_is_as_ahead_of_time(program: str, llvm: int) -> None:
    """A program that the JIT runs prints the output of the executable, and calls each driver
    function as often as the executable.

    The test allows one difference: the number of calls to hipModuleUnload. The JIT runner runs
    global destructors before the process ends, so the destructors unload the module with globals
    while HIP still works. The library does not cache a module with globals, and an executable
    unloads such a module too late (trap 10). The library caches modules without globals, and
    releases nothing at exit.
    """
    policy = "python" if llvm == 22 else "builtin"
    options = {"backend": "softgpu", "policy": policy, "iterations": rounds(program)}
    compiled = run(program, llvm, Way(library()), stats=True, **options)
    jitted = jit(program, llvm, policy=policy, stats=True)
    good(jitted)
    assert jitted.stdout == compiled.stdout == printed(program, llvm)
    counts, expected = calls(jitted), calls(compiled)
    expected.pop("hipModuleUnload", None)
    unloads = counts["hipModuleLoadData"] if program == "globals" else 0
    assert counts.pop("hipModuleUnload", 0) == unloads
    assert counts == expected


def calls(outcome: Outcome) -> dict[str, int]:
    """Returns how often each function of HIP was called, except functions whose call counts depend
    on the device's state."""
    assert outcome.stats is not None
    counted = {name: counter["calls"] for name, counter in outcome.stats["hip"].items()}
    return {k: v for k, v in counted.items() if k not in ("hipStreamQuery", "hipGetLastError")}


def numbers(text: str) -> list[float]:
    """Returns the data of a memref as LLVM's own printMemrefF32 prints it."""
    _, found, data = text.partition("data = \n[")
    assert found, text
    return [float(word) for word in data.rstrip("]\n").split(",")]


@pytest.mark.parametrize("named", [True, False])
def test_the_command_runs_the_runner(named: bool) -> None:
    """The library is preloaded, so the runner finds the library's functions, whether or not the
    runner's command names the library."""
    outcome = jit(
        "vecadd",
        22,
        runtime=library() if named else RUNNER_UTILS[1],
        helpers=RUNNER_UTILS,
        wrap=(str(COMMAND), "run", "--device", "softgpu", "--"),
    )
    good(outcome)
    assert numbers(outcome.stdout) == [3.75] * 1000


# ---- one HIP, apart from the program's LLVM ------------------------------------------------------


@dataclass(frozen=True)
class Mapped:
    """The number of executable mappings that a process has of each file."""

    code: dict[str, int]

    @classmethod
    def read(cls, path: Path) -> Mapped:
        code: dict[str, int] = {}
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) == 6 and "x" in words[1]:
                name = os.path.basename(words[5])
                code[name] = code.get(name, 0) + 1
        return cls(code)

    def of(self, prefix: str) -> list[int]:
        return [count for name, count in self.code.items() if name.startswith(prefix)]


@pytest.fixture(scope="module")
def write_maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("maps") / "libwrite_maps.so"
    return compile_c(out, WRITE_MAPS, "-shared", "-fPIC")


@pytest.mark.parametrize("linked", [False, True])
def test_the_process_has_one_hip(linked: bool, write_maps: Path, tmp_path: Path) -> None:
    """The library uses the HIP that a program already has, and keeps HIP's compiler apart from the
    program's LLVM."""
    maps = tmp_path / "maps"
    helpers = [print_library(), write_maps, *([softgpu.hip({})] if linked else [])]
    changes = {"MGPU_RT_HIP": ""} if linked else {}
    outcome = jit("vecadd", 22, helpers=helpers, MAPS=str(maps), MGPU_RT_VERBOSE="1", **changes)
    assert (outcome.signal, outcome.stdout) == (0, printed("vecadd", 22))
    mapped = Mapped.read(maps)
    assert mapped.of("libamdhip64") == mapped.of("libLLVM-15") == [1]
    assert mapped.of("libamd_comgr") == [1, 1]  # the emulated device's library, and AMD's behind it
    assert mapped.of("libLLVM.so.22") == mapped.of("libMLIR.so.22") == [1]


@pytest.mark.check
def test_the_guard_proves_something() -> None:
    """The runner crashes if HIP's compiler is bound to libMLIR's symbols."""
    changes = {"MGPU_RT_TEST_SYMBOLS": "shared", "MGPU_RT_SOFTGPU": "compiler_cache=off"}
    assert jit("vecadd", 22, **changes).signal == signal.SIGSEGV


@pytest.mark.check
def test_the_compiler_is_the_one_that_hip_would_take(tmp_path: Path) -> None:
    """The library searches in HIP's order: LD_LIBRARY_PATH first. So the library finds the compiler
    that HIP would load."""
    compiler = softgpu.driver().parent / COMPILER
    other = tmp_path / COMPILER
    other.symlink_to(softgpu.hip({}).parent / COMPILER)
    search = os.pathsep.join([str(compiler.parent), str(tmp_path)])
    outcome = jit("vecadd", 22, LD_LIBRARY_PATH=search, MGPU_RT_VERBOSE="1")
    assert outcome.stdout == printed("vecadd", 22)
    assert f"HIP's compiler {compiler}: apart from" in outcome.stderr


def test_hip_is_not_kept_apart_where_no_llvm_is_there() -> None:
    changes = {"backend": "softgpu", "policy": "builtin", "MGPU_RT_VERBOSE": "1"}
    outcome = run("vecadd", 22, Way(library()), **changes)
    assert outcome.stdout == printed("vecadd", 22)
    assert "HIP's compiler" not in outcome.stderr
    asked = run("vecadd", 22, Way(library()), **changes, MGPU_RT_TEST_SYMBOLS="own")
    assert asked.stdout == printed("vecadd", 22)
    assert "HIP's compiler" in asked.stderr


def test_hip_is_not_kept_apart_from_a_foreign_allocator(tmp_path: Path) -> None:
    """A foreign allocator prevents the library from separating HIP from the program. The library
    names the allocator in one line. No symbol of LLVM 19's runner collides with a symbol of HIP's
    compiler."""
    allocator = compile_c(tmp_path / "liballocator.so", ALLOCATOR, "-shared", "-fPIC")
    outcome = jit("vecadd", 19, LD_PRELOAD=str(allocator))
    assert (outcome.signal, outcome.stdout) == (0, printed("vecadd", 19))
    assert outcome.stderr.count("\n") == outcome.stderr.count("cannot prevent this") == 1
    assert str(allocator) in outcome.stderr
