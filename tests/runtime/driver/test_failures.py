"""The counts of failed calls, and the exit status with MGPU_RT_ERRORS=fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import folders, known, recordings
from tests.support.child import Mgpu, environment, in_child, library
from tests.support.compiled import compile_c
from tests.support.folders import in_folder
from tests.support.patience import run_process

#: A program that makes a failing call of mgpuMemFree. An argument selects the way in which the
#: program ends.
PROGRAM = r"""
#include "ends.h"

static char memory[64];
static void fail(void) { mgpuMemFree(memory, NULL); }
static void *fail_in_thread(void *nothing) { fail(); return nothing; }
static void succeed(void) { mgpuStreamDestroy(mgpuStreamCreate()); }
static void say(void) { puts("handler"); }
static int is(const char *how, const char *name) { return strcmp(how, name) == 0; }

static int fails_late;
__attribute__((destructor)) static void end(void) { if (fails_late) fail(); }

/* The child ends by exit with status 0; returns its status. */
static int in_child(void (*act)(void)) {
    int status;
    const int child = fork();
    if (!child) {
        act();
        exit(0);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    pthread_t thread;
    if (is(how, "failing handler"))
        atexit(fail);
    fails_late = is(how, "destructor");
    if (is(how, "failing handler") || is(how, "destructor") || is(how, "success"))
        return succeed(), 0;
    if (is(how, "child")) {
        succeed();
        printf("%d\n", in_child(fail));
        return 0;
    }
    if (is(how, "thread")) {
        pthread_create(&thread, NULL, fail_in_thread, NULL);
        pthread_join(thread, NULL);
        return 0;
    }
    if (is(how, "handler"))
        atexit(say);
    fail();
    if (is(how, "parent")) {
        const int good = in_child(succeed), idle = in_child(say), bad = in_child(fail);
        printf("%d %d %d\n", good, idle, bad);
        return 0;
    }
    end_by(how, argv);
    return argc - 2;
}
"""

#: The program opens the library after the program has registered an exit handler. This handler runs
#: after HIP's exit handler.
LATE = r"""
#include "program.h"
static void *library;
static void wait_late(void) { ((void (*)(void *))dlsym(library, "mgpuStreamSynchronize"))(NULL); }
static void release(void) { ((void (*)(void *))dlsym(library, "mgpuStreamDestroy"))(NULL); }
int main(int argc, char **argv) {
    atexit(argc > 2 ? release : wait_late);
    library = dlopen(argv[1], RTLD_NOW);
    void *stream = ((void *(*)(void))dlsym(library, "mgpuStreamCreate"))();
    ((void (*)(void *))dlsym(library, "mgpuStreamDestroy"))(stream);
    return 0;
}
"""

#: Maps each way in which the program ends to the exit status. The library replaces only the status
#: 0.
ENDS = {
    "": 1,
    "exit": 1,
    "exit 3": 3,
    "quick_exit": 1,
    "quick_exit 3": 3,
    "_exit": 0,
    "abort": -6,
    "SIGTERM": -15,
    "exec": 0,
    "pthread_exit": 1,
    "thread": 1,
    "handler": 1,
    "failing handler": 1,
    "destructor": 1,
    "success": 0,
    "child": 0,
    "parent": 1,
}

#: The program's output: handlers run once, and each process counts only its own failures.
PRINTED = {"handler": "handler\n", "child": "1\n", "parent": "handler\n0 0 1\n"}

SAID = "call failed, so the exit status is 1 in place of 0"


@pytest.fixture(scope="module")
def program() -> Path:
    return known.program(folders.folder("failures"), PROGRAM)


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    wanted = environment(MGPU_RT_MANAGER="off", **env)
    return run_process(command, wanted)


@pytest.mark.parametrize("how", ENDS)
def test_a_process_with_a_failed_call_ends_with_1(program: Path, how: str) -> None:
    done = run(program, how, MGPU_RT_ERRORS="fail")
    assert (done.returncode, done.stdout) == (ENDS[how], PRINTED.get(how, "")), done.stderr
    of_child = how in ("child", "parent")
    assert done.stderr.count(SAID) == (ENDS[how] == 1) + of_child


def test_a_call_after_hips_exit_handlers_has_failed() -> None:
    """After HIP's exit handlers have run, the library cannot make the call. A failed call that only
    releases an object does not change the exit status."""
    late = compile_c(folders.folder("failures") / "late", LATE)
    assert run(late, library(), MGPU_RT_ERRORS="fail").returncode == 1
    assert run(late, library(), "release", MGPU_RT_ERRORS="fail").returncode == 0


@pytest.mark.parametrize(("value", "said"), [("", ""), ("report", ""), ("no", "report is used")])
def test_only_the_word_fail_changes_the_status(program: Path, value: str, said: str) -> None:
    done = run(program, "exit", MGPU_RT_ERRORS=value)
    assert done.returncode == 0
    assert said in done.stderr
    assert SAID not in done.stderr


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "sys.exit(4)"])
def test_a_host_without_a_main_of_its_own_ends_so_too(end: str) -> None:
    """The host is Python, which opens the library."""
    code = f"import ctypes, sys; ctypes.CDLL({str(library())!r}).mgpuMemFree(1, 0); {end}"
    status = run(sys.executable, "-c", code, MGPU_RT_ERRORS="fail").returncode
    assert status == (4 if "4" in end else 1)


# ---- what is counted ----

COUNTED = {"policies": ("builtin",), "MGPU_RT_TRACE": "trace.json"}
INVALID = "hipErrorInvalidValue"


def failed(mgpu: Mgpu) -> dict[tuple[str, str], int]:
    return {(row["function"], row["error"]): row["calls"] for row in mgpu.stats()["failed"] or ()}


@in_child(**COUNTED)
@in_folder
def test_failed_calls_are_counted_by_function_and_error(mgpu: Mgpu) -> None:
    assert failed(mgpu) == {}
    for _ in range(3):
        mgpu.MemFree(mgpu.ffi.cast("void *", 1), mgpu.null)
    image = mgpu.image(b"none")
    assert not mgpu.load(image)
    mgpu.launch(mgpu.ffi.NULL)
    stream = mgpu.StreamCreate()
    mgpu.MemFree(mgpu.MemAlloc(100, stream, False), stream)
    counted = failed(mgpu)
    assert counted.pop(("mgpuMemFree", INVALID)) == 3
    assert {function for function, _ in counted} == {"mgpuModuleLoad", "mgpuLaunchKernel"}
    assert all(error.startswith("hipError") for _, error in counted)
    assert set(counted.values()) == {1}
    trace = recordings.trace("trace.json")
    frees = [e for e in trace["traceEvents"] if e["name"] in ("mgpuMemFree", "hipFree")]
    assert [e["args"].get("error") for e in frees] == [INVALID] * 6 + [None]
