"""`compare`, `report` and `stats` list failed calls first. With --fail-on-error, the exit status of
`run` is 1 if a call failed."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from tests.python.cli.test_report import files
from tests.support import known, recorded
from tests.support.child import library
from tests.support.command import command, invoke
from tests.support.compiled import compile_c

LAUNCHES = [{"function": "mgpuLaunchKernel", "error": "hipErrorInvalidImage", "calls": 40}]
TOLD = "40 calls of mgpuLaunchKernel failed with hipErrorInvalidImage"

PROGRAM = r"""
#include "ends.h"

static void fail(void) { mgpuMemFree((void *)16, 0); }
static void *fail_in_thread(void *nothing) { fail(); return nothing; }
static void succeed(void) { mgpuStreamDestroy(mgpuStreamCreate()); }

static int in_child(void) { /* returns the child's failures */
    int status;
    unsigned (*failures)(void);
    *(void **)&failures = dlsym(RTLD_DEFAULT, "mgpu_rt_failures");
    if (!fork()) {
        if (failures() == 0)
            fail();
        exit((int)failures());
    }
    wait(&status);
    return WEXITSTATUS(status);
}

static const char *how;
__attribute__((destructor)) static void end(void) {
    if (strcmp(how, "destructor") == 0)
        fail();
}

int main(int argc, char **argv) {
    pthread_t thread;
    how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "success") == 0 || strcmp(how, "destructor") == 0)
        return succeed(), 0;
    if (strcmp(how, "thread") == 0)
        return pthread_create(&thread, NULL, fail_in_thread, NULL) || pthread_join(thread, NULL);
    if (strcmp(how, "child") == 0)
        return in_child() != 1;
    fail();
    if (strcmp(how, "parent") == 0)
        return in_child() != 1;
    end_by(how, argv);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a program that exits with status 0 although one call fails."""
    return known.program(tmp_path_factory.mktemp("failing"), PROGRAM)


#: Maps each way in which the program ends to the status with --fail-on-error, which replaces only
#: the status 0. A child that is forked before HIP starts has a recording of its own.
ENDS = {
    **dict.fromkeys(("", "exit", "quick_exit", "_exit", "exec", "pthread_exit", "thread"), 1),
    **dict.fromkeys(("destructor", "child", "parent"), 1),
    **{"success": 0, "exit 3": 3, "abort": -6, "SIGTERM": -15},
}


@pytest.mark.parametrize("how", ENDS)
def test_run_fails_on_error(program: Path, how: str) -> None:
    done = command("run", "--fail-on-error", "--", program, how)
    assert done.returncode == ENDS[how]
    said = "mgpu-rt: 1 call failed, so the exit status is 1 in place of 0"
    assert done.stderr.splitlines().count(said) == (ENDS[how] == 1)
    if how in ("", "child"):
        assert command("run", "--", program, how).returncode == 0


#: A program that calls the library after HIP's exit handlers.
LATE = """
#include "program.h"
static void *library;
static void wait_late(void) { ((void (*)(void *))dlsym(library, "mgpuStreamSynchronize"))(NULL); }
static void release(void) { ((void (*)(void *))dlsym(library, "mgpuStreamDestroy"))(NULL); }
int main(int argc, char **argv) {
    atexit(argc > 2 ? release : wait_late);
    library = dlopen(argv[1], RTLD_NOW);
    ((void *(*)(void))dlsym(library, "mgpuStreamCreate"))();
    return 0;
}
"""


def test_a_call_after_hips_exit_handlers_has_failed(tmp_path: Path) -> None:
    """The library cannot make the call. A call that only releases an object is no failure."""
    late = compile_c(tmp_path / "late", LATE)
    for words, status in ((), 1), (("release",), 0):
        done = command("run", "--fail-on-error", "--", late, library(), *words)
        assert done.returncode == status


def test_compare_begins_with_what_failed(tmp_path: Path) -> None:
    whole = recorded.statistics()
    names = files(tmp_path, good=whole, bad={**whole, "failed": LAUNCHES})
    shown = invoke("compare", *names)
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (1, f"after: {TOLD}")
    assert invoke("compare", names[0], names[0]).exit_code == 0


def test_compare_of_a_program_tells_of_both_runs(program: Path) -> None:
    done = command("compare", "--device", "hip", "--", program)
    failed = "1 call of mgpuMemFree failed with hipErrorInvalidValue"
    assert done.stdout.splitlines()[:2] == [f"before: {failed}", f"after: {failed}"]
    assert done.returncode == 1


def test_stats_begins_with_what_failed(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    assert command("run", "--stats-json", path, "--", program).returncode == 0
    told = "this run: 1 call of mgpuMemFree failed with hipErrorInvalidValue"
    assert command("stats", path).stdout.splitlines()[0] == told


@pytest.mark.parametrize("which", ["before", "after"])
def test_a_page_says_that_calls_failed(which: str, tmp_path: Path) -> None:
    runs = {"before": recorded.stock(), "after": recorded.statistics()}
    runs[which]["failed"] = LAUNCHES
    failed, outcome = _lead(tmp_path, runs)
    assert failed == f"{which}: {TOLD}."
    told = "The program's calls took 5.00 ms before and 50.0 µs after."
    assert outcome == f"{told} Calls failed, so these times do not compare."


def _lead(folder: Path, runs: dict[str, dict]) -> list[str]:
    result = invoke("compare", "--report", "-", *files(folder, **runs))
    return re.findall('<p class="lead[^>]*>(.*?)</p>', html.unescape(result.stdout))


def test_a_runtime_in_python_has_uncounted_calls_of_the_driver(tmp_path: Path) -> None:
    whole = recorded.statistics(overridden=300, hip={})
    told = "a runtime in place of this library answered 300 calls: its calls of the driver "
    (name,) = files(tmp_path, python=whole)
    assert f"before: {told}" in invoke("compare", name, name).stdout
    assert told in invoke("compare", "--report", "-", name).stdout


def test_an_errors_number_is_never_shown(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "trace.json"
    assert command("run", "--trace", path, "--", program).returncode == 0
    errors = [event["args"].get("error") for event in json.loads(path.read_text())["traceEvents"]]
    assert errors.count("hipErrorInvalidValue") == 2
