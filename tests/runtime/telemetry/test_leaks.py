"""Memory that a program has not freed at its end: the library leaves the memory to the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import known, recordings
from tests.support.child import ROOT, environment
from tests.support.patience import run_process

PROGRAM = """
import mgpu_rt
runtime = mgpu_rt.load()
stream = runtime.mgpuStreamCreate()
blocks = [runtime.mgpuMemAlloc(size, stream, False) for size in (1000, 2000, 3000)]
for block in blocks[{held}:]:
    runtime.mgpuMemFree(block, stream)
runtime.mgpuStreamDestroy(stream)
import json
print(json.dumps(mgpu_rt.stats()))
"""


def run(held: int, tmp_path: Path, **env: str) -> tuple[subprocess.CompletedProcess, dict]:
    log = tmp_path / "log.json"
    result = run_process(
        [sys.executable, "-c", PROGRAM.format(held=held)],
        environment(HIPSTUB_LOG=str(log), **env),
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr
    return result, json.loads(log.read_text())


@pytest.mark.parametrize("python", [{}, {"MGPU_RT_MANAGER": "off"}], ids=["python", "builtin"])
def test_cached_memory_is_not_freed_at_exit(python: dict[str, str], tmp_path: Path) -> None:
    """To release the memory, the library would call a function that waits for the device, but the
    device may wait for the program."""
    for held in (0, 2):
        result, log = run(held, tmp_path, **python)
        assert log["counts"]["hipMalloc"] == 3
        assert "hipFree" not in log["counts"]
        assert (log["misuse"], result.stderr) == ([], "")


HELD = r"""
#include "ends.h"

static void *late;

__attribute__((destructor)) static void free_late(void) {
    mgpuMemFree(late, NULL);
    mgpuMemFree(late, NULL); /* in vain */
}

int main(int argc, char **argv) {
    void *blocks[10], *stream = mgpuStreamCreate();
    (void)argc;
    for (int i = 0; i < 10; i++)
        blocks[i] = mgpuMemAlloc(4096, stream, 0);
    for (int i = 0; i < 3; i++)
        mgpuMemFree(blocks[i], stream);
    if (strcmp(argv[1], "destructor") == 0)
        late = blocks[9];
    end_by(argv[1], argv);
    return 0;
}
"""


def test_statistics_have_the_memory_of_the_programs_last_call(tmp_path: Path) -> None:
    """The library's own end gives nothing back. A destructor frees a block after that end."""
    program = known.program(tmp_path, HELD)
    found = {}
    for how in ("_exit", "exit", "destructor"):
        file = tmp_path / how
        known.run_program(program, how, MGPU_RT_STATS=str(file), MGPU_RT_MANAGER="off")
        found[how] = recordings.stats(file)["memory"]["0"]
    peaks = {"peak_allocated": 10 * 4096, "peak_reserved": 10 * 4096}
    whole = {"allocated": 7 * 4096, "reserved": 10 * 4096, "blocks": 10, "cached_blocks": 3}
    assert found["_exit"] == found["exit"] == {**peaks, **whole}
    freed = {"allocated": 6 * 4096, "reserved": 9 * 4096, "blocks": 9, "cached_blocks": 3}
    assert found["destructor"] == {**peaks, **freed}


IN_A_CALL = r"""
#include "ends.h"

#include <mgpu_rt.h>

enum { BYTES = 4096 };
static void *block, *stream;
static sem_t served, exited;
static pthread_t worker;

/* The library has served the call, and is not yet back in its caller, while the process exits. */
static void wait_for_exit(void) {
    sem_post(&served);
    sem_wait(&exited);
}

static void *slow_alloc(uint64_t bytes, void *on, bool shared) {
    __typeof__(&mgpuMemAlloc) native = (__typeof__(native))mgpu_rt_native("mgpuMemAlloc");
    void *const found = native(bytes, on, shared);
    wait_for_exit();
    return found;
}

static void slow_free(void *address, void *on) {
    __typeof__(&mgpuMemFree) native = (__typeof__(native))mgpu_rt_native("mgpuMemFree");
    native(address, on);
    wait_for_exit();
}

static void *call_alloc(void *unused) {
    block = mgpuMemAlloc(BYTES, stream, false);
    return unused;
}

static void *call_free(void *unused) {
    mgpuMemFree(block, stream);
    return unused;
}

__attribute__((destructor)) static void end_call(void) {
    sem_post(&exited);
    pthread_join(worker, NULL);
}

int main(int argc, char **argv) {
    const bool allocates = argc > 2 && strcmp(argv[2], "mgpuMemAlloc") == 0;
    at_quick_exit(end_call); /* runs after the library's own handler */
    sem_init(&served, 0, 0);
    sem_init(&exited, 0, 0);
    stream = mgpuStreamCreate();
    call_alloc(NULL);
    if (allocates)
        call_free(NULL);
    mgpu_rt_intercept("mgpuMemAlloc", (mgpu_rt_function)slow_alloc);
    mgpu_rt_intercept("mgpuMemFree", (mgpu_rt_function)slow_free);
    pthread_create(&worker, NULL, allocates ? call_alloc : call_free, NULL);
    sem_wait(&served);
    end_by(argv[1], argv);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["exit", "quick_exit"])
@pytest.mark.parametrize(("call", "held"), [("mgpuMemAlloc", 1), ("mgpuMemFree", 0)])
def test_a_call_that_lasts_beyond_the_exit_counts_once(
    call: str, held: int, how: str, tmp_path: Path
) -> None:
    """The exit finds the block in the state in which the call has left it."""
    program = known.program(tmp_path, IN_A_CALL, f"-I{ROOT}/csrc/include")
    file = tmp_path / "stats"
    done = known.run_program(program, how, call, MGPU_RT_STATS=str(file), MGPU_RT_MANAGER="off")
    assert done.stderr == ""
    found = recordings.stats(file)["memory"]["0"]
    assert found == {
        **{"allocated": held * 4096, "peak_allocated": 4096},
        **{"reserved": 4096, "peak_reserved": 4096, "blocks": 1, "cached_blocks": 1 - held},
    }


DESTROYED_AT_WORK = """
import mgpu_rt
runtime = mgpu_rt.load()
streams = [runtime.mgpuStreamCreate() for _ in range(4)]
for stream in streams:
    block = runtime.mgpuMemAlloc(4096, stream, False)
    runtime.mgpuMemset32(block, 1, 1024, stream)
    runtime.mgpuMemFree(block, stream)
    event = runtime.mgpuEventCreate()
    runtime.mgpuEventRecord(event, stream)
    runtime.mgpuStreamWaitEvent(streams[0], event)
    runtime.mgpuEventDestroy(event)
for stream in streams[1:]:
    runtime.mgpuStreamDestroy(stream)
runtime.mgpuStreamSynchronize(streams[0])
runtime.mgpuStreamDestroy(streams[0])
"""


@pytest.mark.parametrize("cache", ["on", "off"])
def test_streams_destroyed_at_work_go_back_at_exit(cache: str, tmp_path: Path) -> None:
    """The library destroys streams once they are idle, as stock does: HIP 7 reports the signals of
    streams that nobody destroyed as leaked."""
    log = tmp_path / "log.json"
    release = {"HIPSTUB_VERSION": "70000000"}
    env = environment(HIPSTUB_LOG=str(log), HIPSTUB_ASYNC="100000", MGPU_RT_CACHE=cache, **release)
    command = [sys.executable, "-c", DESTROYED_AT_WORK]
    subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=60)
    written = json.loads(log.read_text())
    assert written["counts"]["hipStreamCreate"] == written["counts"]["hipStreamDestroy"] == 4
    assert written["misuse"] == []


@pytest.mark.parametrize(("counted", "peak"), [({}, None), ({"MGPU_RT_STATS": "/dev/null"}, 6144)])
def test_a_peak_that_is_not_counted_is_none(
    tmp_path: Path, counted: dict[str, str], peak: int | None
) -> None:
    """If the program has allocated bytes, a peak of 0 bytes would be wrong."""
    result, _ = run(2, tmp_path, **counted)
    (memory,) = json.loads(result.stdout)["memory"].values()
    assert (memory["allocated"], memory["peak_allocated"]) == (3072, peak)
