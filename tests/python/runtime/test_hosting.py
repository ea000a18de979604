"""MGPU_RT_RUNTIME names a runtime in Python; the programs themselves do not use Python."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.programs.test_programs import PRINTED, good, printed, rounds
from tests.support import known, programs, recordings
from tests.support.child import ROOT, environment, library
from tests.support.command import command
from tests.support.hosting import (
    KERNEL,
    bare_python,
    host_command,
    promptly,
    python_with_cffi,
    run_host,
)
from tests.support.patience import HANG, run_process
from tests.support.suites import covering, in_check

HERE = str(Path(__file__).parent)
SHIPPED = ["PlainRuntime", "CachedRuntime", "Singleton"]
RUNTIMES = ["runtimes:PassAll", *(f"mgpu_rt.runtime:{name}" for name in SHIPPED)]


def asked(runtime: str, **changes: str) -> dict[str, str]:
    """Returns an environment that names a runtime and disables the manager."""
    given = {"MGPU_RT_MANAGER": "delay=100000", "PYTHONPATH": HERE, "MGPU_RT_RUNTIME": runtime}
    return environment(**{**given, **changes})


def run(runtime: str, mode: str = "plain", **changes: str) -> subprocess.CompletedProcess[str]:
    return run_host(mode, asked(runtime, **changes))


# ---- every kind of host ----

MODES = ["plain", "local-plain", "thread", "local-thread", "threads", "dlclose"]
MODES += ["fork-before", "fork-after", "fork-busy", "fork-first", "small-stack"]


@pytest.mark.parametrize(
    ("runtime", "mode"),
    covering(((runtime, mode) for runtime in RUNTIMES for mode in MODES), strength=1),
)
def test_a_host_is_served(runtime: str, mode: str) -> None:
    done = run(runtime, mode)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.check
@pytest.mark.parametrize("mode", ["locale", "signals", "misses", "main-ends"])
def test_a_host_is_served_beside_a_manager(mode: str) -> None:
    env = promptly(PYTHONPATH=HERE, MGPU_RT_RUNTIME="runtimes:PassAll", LC_ALL="C.UTF-8")
    done = run_host(mode, env)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def counts(tmp_path: Path, runtime: str) -> dict[str, int]:
    log = tmp_path / "log"
    done = run(runtime, HIPSTUB_LOG=str(log))
    assert done.returncode == 0, done.stderr
    return json.loads(log.read_text())["counts"]


@pytest.mark.parametrize("runtime", ["", *RUNTIMES])
def test_a_caching_runtime_asks_hip_once(runtime: str, tmp_path: Path) -> None:
    """The program launches a kernel twice. A caching runtime loads the module and creates a stream
    once. A plain runtime loads the module and creates a stream for each launch."""
    found = counts(tmp_path, runtime)
    times = 2 if runtime.endswith("PlainRuntime") else 1
    for function in ("hipModuleLoadData", "hipModuleGetFunction", "hipStreamCreate"):
        assert found[function] == times, function
    assert found["hipModuleLaunchKernel"] == 2


def test_a_runtime_sees_kernels_and_the_end() -> None:
    done = run("runtimes:Names")
    assert done.stderr == f"{KERNEL}<1, 1>()\n" * 2 + "the end\n"


def test_settings_have_the_types_of_their_attributes() -> None:
    words = "count=3 ratio=0.25 word='two, or 2?' on=on"
    assert run(f"runtimes:Set?{words}").stderr == "3 0.25 two, or 2? True\n"


def test_calls_are_counted_once(tmp_path: Path) -> None:
    """A runtime's calls to the library do not count as calls of the program."""
    path = tmp_path / "stats.json"
    assert run("runtimes:PassAll", MGPU_RT_STATS=str(path)).returncode == 0
    stats = recordings.stats(path)
    assert stats["abi"]["mgpuLaunchKernel"]["calls"] == 2
    assert stats["kernels"][KERNEL]["launches"] == 2


@pytest.mark.check
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_statistics_tell_of_calls_of_the_driver_that_were_not_counted(
    runtime: str, tmp_path: Path
) -> None:
    """A hook passes its calls on to the library. The statistics also count the driver calls that
    the library then makes."""
    path = tmp_path / "stats.json"
    assert run(runtime, MGPU_RT_STATS=str(path)).returncode == 0
    stats = recordings.stats(path)
    calls = sum(row["calls"] for row in stats["abi"].values())
    is_hook = runtime.endswith("PassAll")
    assert stats["overridden"] == (0 if is_hook else calls)
    assert ("hipModuleLaunchKernel" in stats["hip"]) is is_hook
    assert stats["kernels"][KERNEL]["launches"] == 2
    assert [module["loads"] for module in stats["modules"]] == [2]


# ---- launches ----


def test_python_keeps_its_state_of_a_thread(tmp_path: Path) -> None:
    """Two threads of C launch twice each. Python's variables of a thread live as long as the
    thread, and a launch leaves errno unchanged."""
    source = """
    #include "program.h"
    #include <errno.h>
    #include <pthread.h>
    static void *launch_twice(void *nothing) {
        for (int i = 1; i < 3; i++) {
            errno = E2BIG;
            mgpuLaunchKernel(NULL, i, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0);
            if (errno != E2BIG)
                puts("errno has changed");
        }
        return nothing;
    }
    int main(void) {
        pthread_t thread;
        mgpuStreamCreate();
        for (int i = 0; i < 2; i++)
            if (pthread_create(&thread, NULL, launch_twice, NULL) == 0)
                pthread_join(thread, NULL);
    }
    """
    done = run_process([known.program(tmp_path, source)], asked("runtimes:OfThreads"))
    assert done.stdout == 2 * "1 (1, 1, 1)\n2 (2, 1, 1)\n", done.stderr


# ---- first calls ----


def test_first_calls_of_threads_wait_for_the_runtime() -> None:
    """8 threads and the main thread each create a stream. All nine threads wait until the runtime
    exists. Each thread's first call then reaches the runtime."""
    done = run("runtimes:SlowToMake", "threads")
    assert (done.returncode, done.stderr.count("asked")) == (0, 9)


def test_calls_on_a_small_stack_pass_by_the_runtime_with_a_warning() -> None:
    done = run("runtimes:Names", "small-stack")
    assert done.stdout == "ok\n"
    assert done.stderr.count("calls of this thread bypass the runtime") == 1
    assert KERNEL not in done.stderr


# ---- failures ----


@pytest.mark.check
@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        ("runtimes", "it is not of the form package.module:Class"),
        ("nowhere:Class", "there is no module 'nowhere' in /"),
        ("nowhere:Class", " or the packages of this Python"),
        ("runtimes:Nothing", "'runtimes' has no class 'Nothing'"),
        ("runtimes:Forgets", "is no Runtime whose __init__ calls super().__init__()"),
        ("runtimes:NoRuntime", "not a class that derives from mgpu_rt.runtime.Runtime"),
        ("runtimes:Names,nowhere:Class", "there is no module 'nowhere' in /"),
        ("runtimes:Set?nonsense=1", "no setting 'nonsense'"),
        ("runtimes:Set?count", "is not of type int"),
        ("runtimes:Set?count=1.5", "the setting count=1.5 is not of type "),
        ("runtimes:Set?on=maybe", "the setting on=maybe is not of type "),
        ("mgpu_rt.hooks:NanCheck?dtype=i32", "'i32' has no NaN: name one of f16, bf16, f32, f64"),
    ],
)
def test_a_runtime_that_cannot_be_made_ends_the_program(runtime: str, words: str) -> None:
    done = run(runtime)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("mgpu_rt: MGPU_RT_RUNTIME=") and words in line


def test_a_python_that_cannot_host_is_named() -> None:
    for python, words in (
        (str(bare_python()), "_cffi_backend"),
        ("/bin/true", "'/bin/true' (it is not Python 3.10 or later)"),
    ):
        done = run("runtimes:PassAll", MGPU_RT_MANAGER=python)
        assert (done.returncode, words in done.stderr) == (1, True)


def test_an_option_of_the_command_is_named_as_it_was_written() -> None:
    words = ("run", "--device", "hip", "--hook", "nowhere:Class", "--")
    done = command(*words, *host_command("plain"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("mgpu_rt: --hook nowhere:Class: there is no module 'nowhere' in /")


# ---- the interpreter ----


@pytest.mark.check
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_any_python_can_host(version: str) -> None:
    python = python_with_cffi(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    for mode in ("plain", "threads", "fork-after"):
        done = run("runtimes:PassAll", mode, MGPU_RT_MANAGER=f"{python},delay=100000")
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_the_interpreter_ignores_the_environment_of_the_program() -> None:
    done = run(
        "runtimes:Surroundings", PYTHONHOME="/nowhere", LC_ALL="xx_YY.NONE", PYTHONHASHSEED="no"
    )
    assert done.stdout == "ok\n", done.stderr
    assert done.stderr.splitlines()[0] == f"1 /nowhere {sys.prefix}"


def test_signals_end_the_program_as_before() -> None:
    """Python installs no signal handler, even if the runtime imports signal: SIGINT ends the
    program."""
    env = asked("runtimes:Waits")
    with subprocess.Popen(host_command("served-until"), env=env, stderr=subprocess.PIPE) as program:
        assert program.stderr
        assert program.stderr.readline() == b"waiting\n"
        program.send_signal(signal.SIGINT)
        assert program.wait(HANG) == -signal.SIGINT


# ---- a Python program ----


PROGRAM = """
import os, sys, threading
from cffi import FFI
ffi = FFI()
ffi.cdef("void *mgpuStreamCreate(void); void mgpuStreamDestroy(void *); "
         "void mgpuStreamSynchronize(void *);")
lib = ffi.dlopen(os.environ["LIBRARY"])
def use():
    stream = lib.mgpuStreamCreate()
    lib.mgpuStreamSynchronize(stream)
    lib.mgpuStreamDestroy(stream)
threads = [threading.Thread(target=use) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
use()
child = os.fork()
if child == 0:
    use()
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
print("done")
"""


@pytest.mark.parametrize("version", in_check(["", "3.10", "3.12", "3.13"], bool))
def test_a_python_program_hosts_in_its_own_interpreter(version: str) -> None:
    python = python_with_cffi(version) if version else sys.executable
    if python is None:
        pytest.skip(f"no Python {version} here")
    env = asked("runtimes:PassAll,runtimes:SlowToMake", LIBRARY=str(library()))
    done = run_process([python, "-c", PROGRAM], {**env, "PYTHONPATH": f"{HERE}:{ROOT}"})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr.count("asked") == 5  # the child continues with the library


# ---- lowered programs ----


NAMES = [name for name in PRINTED if name != "spin"]  # the program waits for a GPU's clock
#: `make test` runs a program for each runtime, `make check` each program once.
QUICK = ("vecadd", "churn", "forkjoin", "overlap")
RUNS = [
    (name, RUNTIMES[number % len(RUNTIMES)])
    for number, name in enumerate(sorted(NAMES, key=lambda name: (name not in QUICK, name)))
]


@pytest.mark.parametrize(
    ("program", "runtime"), in_check(RUNS, lambda program, _: program not in QUICK)
)
def test_a_program_prints_the_same(program: str, runtime: str) -> None:
    llvm = 22
    outcome = programs.run(
        program,
        llvm,
        programs.ways()["linked"],
        backend="softgpu",
        policy="builtin",
        iterations=rounds(program),
        MGPU_RT_RUNTIME=runtime,
        PYTHONPATH=HERE,
    )
    good(outcome)
    assert outcome.stdout == printed(program, llvm)
