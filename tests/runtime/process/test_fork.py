"""A child of a fork whose parent has used the GPU, where HIP does not work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.child import Mgpu, environment, in_child
from tests.support.known import program, run_program
from tests.support.patience import run_process

KIB = 1 << 10

USES = """
#include "program.h"
static void use(void) {
    void *stream = mgpuStreamCreate();
    if (!stream)
        _exit(3);
    void *block = mgpuMemAlloc(4096, stream, false);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}
int main(void) {
    int status = 0;
    use();
    if (fork() == 0) {
        use();
        _exit(0);
    }
    wait(&status);
    use();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
"""


def in_fork(act) -> None:
    """Runs a function in a child of this process, and requires that it succeeds."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@in_child(HIPSTUB_ASYNC="held")
def test_a_child_gets_no_objects_of_its_parent(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.MemFree(block, stream)
    mgpu.StreamDestroy(stream)

    def act() -> None:
        made = mgpu.counts("hipStreamCreate", "hipMalloc")
        own = mgpu.StreamCreate()
        assert own != stream
        assert mgpu.MemAlloc(KIB, own, False) != block
        now = mgpu.counts(*made)
        assert now == {function: count + 1 for function, count in made.items()}
        os._exit(0)

    in_fork(act)
    assert mgpu.StreamCreate() == stream  # the parent keeps its objects
    assert mgpu.MemAlloc(KIB, stream, False) == block


@in_child()
def test_a_child_is_told_of_the_fork(mgpu: Mgpu) -> None:
    mgpu.StreamDestroy(mgpu.StreamCreate())

    def act() -> None:
        mgpu.stub.hipstub_set_fault(b"hipStreamCreate:*:2,hipMalloc:*:2")
        assert mgpu.StreamCreate() == mgpu.null
        said = mgpu.stderr()
        assert "'hipStreamCreate(&stream)' failed with 'hipErrorOutOfMemory'" in said
        assert "mgpu_rt: this process is a fork of a process that has used the GPU" in said
        assert mgpu.MemAlloc(KIB, mgpu.null, False) == mgpu.null
        assert "mgpu_rt: " not in mgpu.stderr()
        os._exit(0)

    in_fork(act)


@pytest.mark.check
@pytest.mark.parametrize("mode", ({}, {"MGPU_RT_EXCLUSIVE": "on"}))
def test_amds_hip_refuses_a_child(mode: dict[str, str], tmp_path: Path) -> None:
    done = run_process([str(program(tmp_path, USES))], environment("softgpu", **mode))
    assert done.returncode == 3, done.stderr
    assert "'hipStreamCreate(&stream)' failed" in done.stderr
    assert done.stderr.count("mgpu_rt: this process is a fork") == 1


#: A walk over the mapped objects waits until the main thread sleeps or has forked. The child's copy
#: of `walking` says whether a walk was in progress when the program was forked.
FORKS_IN_A_WALK = """
#include "program.h"
#include <link.h>
#include <sched.h>
static volatile bool watched, walking, forked;
static bool main_sleeps(void) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    return read && strstr(line, ") S ");
}
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    int (*walk)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    *(void **)&walk = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    walking = watched;
    while (walking && !forked && !main_sleeps())
        sched_yield();
    const int result = walk(visit, data);
    walking = false;
    return result;
}
static void *call(void *unused) {
    mgpuStreamDestroy(mgpuStreamCreate());
    return unused;
}
int main(void) {
    pthread_t thread;
    int status = 0;
    watched = true;
    pthread_create(&thread, NULL, call, NULL);
    while (!walking)
        ;
    if (fork() == 0)
        _exit(walking);
    forked = true;
    wait(&status);
    pthread_join(thread, NULL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
"""


def test_a_fork_waits_until_no_thread_walks_over_the_mapped_objects(tmp_path: Path) -> None:
    """The loader's lock is not locked in the child, which would hang at its own walk or dlopen."""
    done = run_program(program(tmp_path, FORKS_IN_A_WALK))
    assert done.returncode == 0, done.stderr
