"""Tests programs that call the library from exit handlers, destructors, constructors, several
threads, or another namespace. Also tests a program that uses two runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.child import BACKENDS, environment, library
from tests.support.compiled import compile_c
from tests.support.images import code_object
from tests.support.known import program, run_program

# ---- 3: calls after the exit handler -------------------------------------------------------------

LATE = """
#include "program.h"
static void *stream, *block;
static char image[1 << 16];
static void read_back(void) { /* as the destructor of a global object does */
    int out[1024] = {0};
    if (!block)
        return;
    mgpuMemcpy(out, block, 4096, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    printf("%d\\n", out[1023]);
}
static void load_and_launch(void) {
    void *module = mgpuModuleLoad(image, sizeof image);
    void *own = mgpuStreamCreate();
    mgpuLaunchKernel(mgpuModuleGetFunction(module, "test_func"), 1, 1, 1, 1, 1, 1, 0, own, 0, 0, 0);
    mgpuStreamSynchronize(own);
    mgpuStreamDestroy(own);
    puts(module ? "launched" : "refused");
}
__attribute__((constructor)) static void construct(void) { atexit(read_back); }
int main(int count, char **words) {
    FILE *file = fopen(getenv("IMAGE"), "rb");
    if (fread(image, 1, sizeof image, file) == 0)
        return 1;
    atexit(load_and_launch);
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(4096, stream, 0);
    mgpuMemset32(block, 7, 1024, stream);
    int warm[1024];
    mgpuMemcpy(warm, block, 4096, stream);
    return 0;
}
"""


@pytest.mark.parametrize("flag", ["-pie", "-no-pie"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_03_exit_handlers_and_destructors_use_the_device(
    tmp_path: Path, backend: str, flag: str
) -> None:
    """If a program imports mgpu* functions, loading the program opens HIP. So HIP's exit handlers
    run after the exit handlers and destructors of the program. The program names no variable of
    another library, so that with -no-pie its hash table is empty (process/mapped.c)."""
    image = tmp_path / "image"
    image.write_bytes(code_object("forum"))
    path = program(tmp_path, LATE, flag)
    done = run_program(path, backend=backend, IMAGE=str(image), MGPU_RT_MANAGER="off")
    assert (done.returncode, done.stdout, done.stderr) == (0, "launched\n7\n", "")


REGISTERED = """
#include "program.h"
enum { WORDS = 4096, BYTES = WORDS * sizeof(int) };
static int *memory, out[WORDS];
static void *block, *stream;
static void fill(int value) {
    for (int i = 0; i < WORDS; i++)
        memory[i] = value;
}
static void unregister(void) { /* the memory serves something else at once, as malloc's does */
    if (!memory)
        return;
    mgpuMemHostUnregister(memory);
    fill(7);
    mgpuMemcpy(block, memory, BYTES, stream);
    fill(8);
    mgpuMemcpy(out, block, BYTES, stream);
    mgpuStreamSynchronize(stream);
    printf("%d\\n", out[WORDS - 1]);
}
__attribute__((constructor)) static void construct(void) { atexit(unregister); }
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, 0);
    memory = aligned_alloc(4096, BYTES);
    mgpuMemHostRegister(memory, BYTES);
    return 0;
}
"""


@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_03_memory_that_a_destructor_unregisters_is_pageable_again(
    tmp_path: Path, backend: str, cache: str
) -> None:
    """From pageable memory, HIP has read everything when the copy's call returns. From registered
    memory, HIP would read later."""
    path = program(tmp_path, REGISTERED)
    env = {"HIPSTUB_ASYNC": "held", "MGPU_RT_CACHE": cache, "MGPU_RT_MANAGER": "off"}
    done = run_program(path, backend=backend, **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


# ---- 14: frees without a stream ------------------------------------------------------------------

TWO_FREES = """
#include "program.h"
static void *first, *second;
static void *free_first(void *unused) {
    mgpuMemFree(first, 0);
    return unused;
}
int main(void) {
    pthread_t thread;
    first = mgpuMemAlloc(4096, 0, 0);
    second = mgpuMemAlloc(4096, 0, 0);
    mgpuMemset32(first, 1, 1024, 0);
    pthread_create(&thread, 0, free_first, 0);
    while (hipstub_waiters(0) == 0)
        usleep(1000);
    mgpuMemFree(second, 0);
    printf("%d\\n", hipStreamQuery(0));
    fflush(stdout);
    _exit(0);
}
"""


@pytest.mark.parametrize("exclusive", ["on", "off"])
def test_14_each_free_waits_by_itself(tmp_path: Path, exclusive: str) -> None:
    stub = environment()["MGPU_RT_HIP"]
    path = program(tmp_path, TWO_FREES, stub, f"-Wl,-rpath,{Path(stub).parent}")
    until_both_wait = {"HIPSTUB_ASYNC": "held2"}
    done = run_program(path, MGPU_RT_MANAGER="off", MGPU_RT_EXCLUSIVE=exclusive, **until_both_wait)
    assert (done.stdout, done.stderr) == ("0\n", "")


# ---- 15: another namespace -----------------------------------------------------------------------

NAMESPACE = """
#include "program.h"
int main(void) {
    void *library = dlmopen(LM_ID_NEWLM, getenv("RUNTIME"), RTLD_NOW);
    void *(*create)(void) = 0;
    if (library)
        *(void **)&create = dlsym(library, "mgpuStreamCreate");
    else
        puts(dlerror());
    puts(create && create() ? "created" : "failed");
}
"""


@pytest.mark.parametrize("python", ["off", "on"])
def test_15_a_library_opened_by_dlmopen_serves(tmp_path: Path, python: str) -> None:
    path = compile_c(tmp_path / "program", NAMESPACE, "-ldl")
    done = run_program(path, RUNTIME=str(library()), MGPU_RT_MANAGER=python)
    assert (done.returncode, done.stdout, done.stderr) == (0, "created\n", "")


# ---- a first call in a constructor ---------------------------------------------------------------

FIRST_CALLS = """
#include "program.h"
static sem_t loading;
static void *call(void *unused) {
    (void)unused;
    sem_wait(&loading);
    puts(mgpuStreamCreate() ? "thread: created" : "thread: failed");
    return NULL;
}
void begin_to_load(void) { sem_post(&loading); }
int main(void) {
    pthread_t thread;
    setvbuf(stdout, 0, _IOLBF, 0);
    sem_init(&loading, 0, 0);
    pthread_create(&thread, 0, call, 0);
    if (!dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL))
        puts(dlerror());
    pthread_join(thread, 0);
}
"""
#: The pause lets the other thread reach any place where it waits for the loader's lock.
PLUGIN = """
#include "program.h"
void begin_to_load(void);
__attribute__((constructor)) static void construct(void) {
    begin_to_load();
    usleep(300000);
    puts(mgpuStreamCreate() ? "constructor: created" : "constructor: failed");
}
"""


@pytest.mark.parametrize("trace", ["", "markers"])
def test_a_first_call_waits_for_no_thread_that_holds_the_loaders_lock(
    tmp_path: Path, trace: str
) -> None:
    """A constructor, under dlopen, and another thread both make their first calls."""
    path = program(tmp_path, FIRST_CALLS, "-rdynamic")
    shared = ("-shared", "-fPIC", "-Wl,--allow-shlib-undefined")
    plugin = compile_c(tmp_path / "plugin.so", PLUGIN, *shared)
    done = run_program(path, PLUGIN=str(plugin), MGPU_RT_MANAGER="off", MGPU_RT_TRACE=trace)
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == ["constructor: created", "thread: created"]
