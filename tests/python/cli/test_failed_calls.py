"""`compare`, `report` and `stats` list failed calls first. With --fail-on-error, the exit status of
`run` is 1 if a call failed."""

from __future__ import annotations

import html
import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.cli.test_report import files
from tests.support import known, recorded
from tests.support.child import environment, library
from tests.support.command import COMMAND, assert_sentence, command, invoke
from tests.support.compiled import compile_c
from tests.support.patience import run_process

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


#: The values of a variable that names a file in which the library would record.
NAMED = [
    *(("MGPU_RT_TRACE", "t"), ("MGPU_RT_TRACE", "markers,t")),
    *(("MGPU_RT_STATS", "s"), ("MGPU_RT_STATS", "1,s")),
]


@pytest.mark.parametrize("option", ["--fail-on-error", "--stats", "--trace=out"])
@pytest.mark.parametrize(("variable", "value"), NAMED)
def test_a_recording_that_a_variable_names_is_refused(
    variable: str, value: str, option: str, program: Path, tmp_path: Path
) -> None:
    """The library makes one recording: either that file or the command would get none."""
    if option == "--trace=out":
        option = f"--trace={tmp_path / 'out'}"
    value = value[:-1] + str(tmp_path / value[-1])
    done = command("run", option, "--", program, **{variable: value})
    assert list(tmp_path.iterdir()) == []
    assert_sentence(done.returncode, done.stderr, f"unset {variable}, or give --")


@pytest.mark.parametrize("how", ["", "success"])
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("MGPU_RT_TRACE", value) for value in ("", "0", "off", "markers", "/dev/null")),
        *(("MGPU_RT_STATS", value) for value in ("", "0", "off", "1", "on", "/dev/null")),
    ],
)
def test_a_variable_that_names_no_file_changes_no_status(
    variable: str, value: str, how: str, program: Path
) -> None:
    done = command("run", "--fail-on-error", "--", program, how, **{variable: value})
    assert done.returncode == ENDS[how]
    assert ("calls of the program" in done.stderr) == (value in ("1", "on"))


def _limited(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a command whose recordings cannot be made, because files may have only 1000 bytes."""
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
    return run_process([COMMAND, *words], environment(**env), **limit)


@pytest.mark.parametrize(("how", "status"), [("success", 1), ("exit 3", 3)])
def test_a_recording_that_cannot_be_made_is_no_success(
    how: str, status: int, program: Path, tmp_path: Path
) -> None:
    done = _limited("run", "--fail-on-error", "--", str(program), how, TMPDIR=str(tmp_path))
    assert done.returncode == status
    lost, *ends = [line for line in done.stderr.splitlines() if line.startswith("mgpu-rt: ")]
    assert ": File too large" in done.stderr
    assert "was empty: the library could not make the recording" in lost
    said = "mgpu-rt: 1 recording is lost, so the exit status is 1 in place of 0"
    assert ends == ([said] if status == 1 else [])
    assert list(tmp_path.iterdir()) == []


#: Damages the recordings of the program's earlier processes.
DAMAGES = """
import os, subprocess, sys
subprocess.run(sys.argv[2:], check=True)
folder = os.path.dirname(os.environ["MGPU_RT_STATS"])
for name in os.listdir(folder):
    os.truncate(os.path.join(folder, name), int(sys.argv[1]))
"""


def test_compare_names_a_recording_that_cannot_be_made(program: Path) -> None:
    done = _limited("compare", "--", str(program), "success")
    assert done.returncode == 2
    assert "is empty: the library could not make the recording" in done.stderr


@pytest.mark.parametrize("size", ["20", "20000"])
def test_a_damaged_recording_is_no_success(size: str, program: Path, tmp_path: Path) -> None:
    words = (sys.executable, "-c", DAMAGES, size, program, "success")
    done = command("run", "--fail-on-error", "--", *words, TMPDIR=str(tmp_path))
    assert done.returncode == 1
    why, lost = done.stderr.splitlines()
    assert "cannot be read" in why and why.endswith("record the program again")
    assert lost == "mgpu-rt: 1 recording is lost, so the exit status is 1 in place of 0"


def test_a_program_without_a_recording_is_named() -> None:
    """A program that makes no call has no recording. The command cannot tell it from a program
    whose recording could not be begun."""
    done = command("run", "--fail-on-error", "--", "true")
    assert done.returncode == 0
    assert "unless a line above says why, 'true' called none of the" in done.stderr


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


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("failed", "status"), [(LAUNCHES, 1), ({}, 0)])
def test_a_page_alone_gives_the_status_too(
    count: int, failed: dict, status: int, tmp_path: Path
) -> None:
    (name,) = files(tmp_path, run={**recorded.statistics(), "failed": failed})
    assert invoke("compare", "--report", "-", *[name] * count).exit_code == status


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
    assert outcome == "Calls failed, so the times of the calls do not compare."


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
