"""Runs a hoisted program over a runtime that prints the calls."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.python.hoist.test_decisions import before_21, since_21
from tests.support import lower
from tests.support.compiled import compile_c
from tests.support.hoisted import RELEASES, hoist
from tests.support.patience import run_process

pytestmark = pytest.mark.check  # each case is compiled

#: Each new handle has a new number. The lines that report a wait or a destruction contain the
#: stream's number.
RUNTIME = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long last;
static void *made(const char *what) {
    const long number = atomic_fetch_add(&last, 1) + 1;
    printf("%s %ld\n", what, number);
    return (void *)number;
}

static void (*during)(void);  /* of each launch */
static void (*loading)(void); /* of each load */

void *mgpuModuleLoad(void *image, size_t size) {
    (void)image, (void)size;
    void *module = made("load");
    if (loading)
        loading();
    return module;
}
void *mgpuModuleGetFunction(void *module, const char *name) {
    printf("look up %s in %ld\n", name, (long)module);
    return module;
}
void mgpuModuleUnload(void *module) {
    printf("unload %ld\n", (long)module);
}
void *mgpuStreamCreate(void) {
    return made("create");
}
void mgpuStreamSynchronize(void *stream) {
    printf("wait %ld\n", (long)stream);
}
void mgpuStreamDestroy(void *stream) {
    printf("destroy %ld\n", (long)stream);
}
void mgpuLaunchKernel(void *f, intptr_t gx, intptr_t gy, intptr_t gz, intptr_t bx, intptr_t by,
                      intptr_t bz, int32_t smem, void *stream, void **params, void **extra,
                      size_t count) {
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem, (void)params;
    (void)extra, (void)count;
    printf("launch %ld on %ld\n", (long)f, (long)stream);
    void (*then)(void) = during;
    if (then)
        then();
}
void elsewhere(void *function) {
    printf("use %ld\n", (long)function);
}
void launch(int64_t number, void *pointer);
"""


def run(directory: Path, llvm: int, main: str, program: str | None = None) -> list[str]:
    """Returns the runtime calls that a hoisted program makes."""
    hoisted = hoist(program or before_21(), llvm).program
    compiled = directory / "program.o"
    compiled.write_bytes(lower.compile_dialect(hoisted, llvm))
    flags = ("-pthread", "-Wall", "-Werror", str(compiled))
    executable = compile_c(directory / "program", RUNTIME + main, *flags)
    done = run_process([executable])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("llvm", RELEASES)
def test_all_is_made_at_the_first_launch_and_goes_back_at_exit(llvm: int, tmp_path: Path) -> None:
    main = 'int main(void) { puts("main"); launch(0, 0), launch(0, 0); puts("end"); return 0; }'
    launch = ["launch 1 on 2", "wait 2"]
    assert run(tmp_path, llvm, main) == [
        *("main", "load 1", "look up f in 1", "create 2", *launch, *launch, "end"),
        *("unload 1", "destroy 2"),
    ]


@pytest.mark.parametrize("llvm", RELEASES)
def test_a_look_up_in_a_module_loaded_before_main_is_hoisted(llvm: int, tmp_path: Path) -> None:
    main = 'int main(void) { puts("main"); launch(0, 0), launch(0, 0); return 0; }'
    assert run(tmp_path, llvm, main, since_21(llvm)) == [
        *("load 1", "main", "look up f in 1", "use 1", "use 1"),
    ]


def test_a_program_that_launches_nothing_asks_for_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, 22, "int main(void) { return 0; }") == []


def test_recursion_has_a_stream_at_each_depth(tmp_path: Path) -> None:
    """When the program requests a second stream, the first stream is busy. The launches on the two
    streams may have to run concurrently."""
    main = """
    static void again(void) { during = NULL; launch(0, 0); }
    int main(void) { during = again; launch(0, 0); during = again; launch(0, 0); return 0; }
    """
    twice = ["launch 1 on 3", "wait 3", "wait 2"]
    assert run(tmp_path, 22, main) == [
        *("load 1", "look up f in 1", "create 2", "launch 1 on 2", "create 3", *twice),
        # The inner launch released stream 3 first, so the next launch reuses stream 3.
        *("launch 1 on 3", "launch 1 on 2", "wait 2", "wait 3", "unload 1"),
        *("destroy 2", "destroy 3"),
    ]


def test_more_streams_than_are_kept_are_destroyed(tmp_path: Path) -> None:
    main = """
    static int depth;
    static void again(void) { if (++depth < 40) launch(0, 0); }
    int main(void) { during = again; launch(0, 0); puts("end"); return 0; }
    """
    said = run(tmp_path, 22, main)
    calls = Counter(line.split()[0] for line in said)
    assert calls["create"] == calls["destroy"] == 40
    assert sum(line.startswith("destroy") for line in said[: said.index("end")]) == 40 - 32


def test_threads_have_streams_of_their_own_and_one_module(tmp_path: Path) -> None:
    """If two threads shared a stream, both threads would release the stream and both threads would
    destroy the stream."""
    main = """
    static pthread_barrier_t barrier;
    static void meet(void) { pthread_barrier_wait(&barrier); }
    static void *work(void *unused) {
        for (int i = 0; i < 200; i++)
            launch(0, 0);
        return unused;
    }
    int main(void) {
        enum { THREADS = 8 };
        pthread_t threads[THREADS];
        pthread_barrier_init(&barrier, NULL, THREADS);
        during = meet;
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        return 0;
    }
    """
    said = run(tmp_path, 22, main)
    calls = Counter(line.split()[0] for line in said)
    assert calls["launch"] == calls["wait"] == 8 * 200
    # All threads launch concurrently, so each thread needs its own stream.
    assert calls["create"] == calls["destroy"] == 8
    assert len({line for line in said if line.startswith("destroy")}) == 8
    # If two threads load the module, the slower thread unloads its own module and uses the other
    # thread's module.
    assert calls["load"] == calls["unload"]
    assert len({line.split()[1] for line in said if line.startswith("launch")}) == 1


def test_concurrent_loads_keep_one_module(tmp_path: Path) -> None:
    main = """
    static pthread_barrier_t barrier;
    static void meet(void) { pthread_barrier_wait(&barrier); }
    static void *work(void *unused) { launch(0, 0); return unused; }
    int main(void) {
        pthread_t other;
        pthread_barrier_init(&barrier, NULL, 2);
        loading = meet;
        pthread_create(&other, NULL, work, NULL);
        work(NULL);
        pthread_join(other, NULL);
        puts("end");
        return 0;
    }
    """
    said = run(tmp_path, 22, main)
    before, after = said[: said.index("end")], said[said.index("end") :]
    assert {"load 1", "load 2"} <= set(before)
    (kept,) = {line.split()[1] for line in before if line.startswith("launch")}
    assert [line for line in before if line.startswith("unload")] == [f"unload {3 - int(kept)}"]
    assert [line for line in after if line.startswith("unload")] == [f"unload {kept}"]


def test_a_child_of_fork_leaves_the_objects_of_its_parent(tmp_path: Path) -> None:
    main = """
    int main(void) {
        launch(0, 0);
        fflush(stdout);
        if (fork() == 0)
            return 0;
        wait(NULL);
        puts("end");
        return 0;
    }
    """
    said = run(tmp_path, 22, main)
    assert said[-3:] == ["end", "unload 1", "destroy 2"]
    assert Counter(said)["unload 1"] == 1


def test_a_launch_from_another_exit_handler_still_works(tmp_path: Path) -> None:
    main = """
    static void late(void) { launch(0, 0); }
    int main(void) { atexit(late); launch(0, 0); return 0; }
    """
    said = run(tmp_path, 22, main)
    assert said[-6:] == [
        *("destroy 2", "load 3", "look up f in 3", "create 4", "launch 3 on 4", "wait 4"),
    ]


def test_a_load_that_failed_is_tried_again(tmp_path: Path) -> None:
    """If the load of a module fails, the next launch loads the module again."""
    main = "int main(void) { last = -1; launch(0, 0), launch(0, 0); return 0; }"
    said = run(tmp_path, 22, main)
    assert [line for line in said if line.startswith(("load", "look"))] == [
        *("load 0", "look up f in 0", "load 2", "look up f in 2"),
    ]


def test_a_library_that_is_closed_gives_back_what_it_kept(tmp_path: Path) -> None:
    compiled = tmp_path / "program.o"
    compiled.write_bytes(lower.compile_dialect(hoist(before_21(), 22).program, 22))
    plugin = compile_c(tmp_path / "plugin.so", "", "-shared", str(compiled))
    main = """
    #include <dlfcn.h>
    int main(int count, char **arguments) {
        void *plugin = dlopen(arguments[1], RTLD_NOW);
        void (*entry)(int64_t, void *) = dlsym(plugin, "launch");
        entry(0, 0);
        puts("close");
        dlclose(plugin);
        puts("end");
        return count != 2;
    }
    """
    host = compile_c(tmp_path / "host", RUNTIME + main, "-rdynamic", "-ldl")
    done = run_process([host, plugin])
    assert done.stdout.splitlines()[-4:] == ["close", "unload 1", "destroy 2", "end"]
