"""Tests mgpuEventElapsedTime: one symbol serves two signatures, and the events that the function
needs have timing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.child import BACKENDS, Mgpu, environment, in_child, library
from tests.support.compiled import compile_c
from tests.support.images import code_object
from tests.support.known import program, run_program

#: Calls mgpuEventElapsedTime by each of the two signatures; prints the error, whether the time is
#: valid, and whether the two times are equal.
CLOCK = """
#include "program.h"
#ifdef IMPORTS
int into(float *, void *, void *) __asm__("mgpuEventElapsedTime");
float elapsed(void *, void *) __asm__("mgpuEventElapsedTime");
#else
static int (*into)(float *, void *, void *);
static float (*elapsed)(void *, void *);
#endif
int main(void) {
    float found = -1;
    void *stream = mgpuStreamCreate();
#ifndef IMPORTS /* a JIT finds it by its name; or a library is opened later, with a module */
    const char *late = getenv("LATE");
    if (late)
        mgpuEventDestroy(mgpuEventCreate());
    void *opened = late ? dlopen(late, RTLD_NOW) : RTLD_DEFAULT;
    *(void **)&into = *(void **)&elapsed =
        dlsym(opened, late ? "clock_of_it" : "mgpuEventElapsedTime");
#endif
    void *start = mgpuEventCreate(), *stop = mgpuEventCreate();
    mgpuEventRecord(start, stream);
    mgpuEventRecord(stop, stream);
    mgpuEventSynchronize(stop);
#ifdef TAKES /* the linker then puts the imported symbol into the hash table, too */
    int (*volatile taken)(float *, void *, void *) = into;
    (void)taken(&found, start, stop);
#endif
    const int error = into(&found, start, stop);
    const float again = elapsed(start, stop);
    printf("%d %d %d\\n", error, found >= 0, found == again);
    mgpuEventDestroy(start);
    mgpuEventDestroy(stop);
    mgpuStreamDestroy(stream);
    return 0;
}
"""

ASKS = """
#include "program.h"
struct mgpu_elapsed clock_of_it(void *a, void *b, void *c) { return mgpuEventElapsedTime(a, b, c); }
__attribute__((constructor)) static void load(void) {
    mgpuModuleLoad(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, open(getenv("IMAGE"), O_RDONLY), 0),
                   0);
}
"""

#: A program's own mgpuEventElapsedTime, like the function of mlir-air: the function prints a line.
OWN = """
#include <stdio.h>
int hipEventElapsedTime(float *, void *, void *);
int mgpuEventElapsedTime(float *milliseconds, void *start, void *stop) {
    const int error = hipEventElapsedTime(milliseconds, start, stop);
    printf("own %d\\n", error);
    return error;
}
"""


def flags_of_events(log: Path) -> list[int]:
    """Returns the flags with which HIP created events; asserts that the stub reports no misuse."""
    record = json.loads(log.read_text())
    made = [c["args"]["flags"] for c in record["calls"] if c["name"] == "hipEventCreateWithFlags"]
    assert record["misuse"] == []
    return made


@pytest.mark.parametrize("flag", ["-DTAKES", "-no-pie"])
def test_the_programs_hash_table_does_not_matter(flag: str, tmp_path: Path) -> None:
    done = run_program(program(tmp_path, CLOCK, "-DIMPORTS", flag), MGPU_RT_MANAGER="off")
    assert (done.stdout, done.stderr) == ("0 1 1\n", "")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_program_that_imports_it_has_times_in_both_signatures(
    cache: str, backend: str, tmp_path: Path
) -> None:
    env = {"MGPU_RT_CACHE": cache, "MGPU_RT_MANAGER": "off", "HIPSTUB_LOG": str(tmp_path / "log")}
    done = run_program(program(tmp_path, CLOCK, "-DIMPORTS"), backend=backend, **env)
    assert (done.stdout, done.stderr) == ("0 1 1\n", "")
    if backend == "stub":
        assert flags_of_events(tmp_path / "log") == [0, 0]


def test_a_library_that_is_opened_later_may_ask(tmp_path: Path) -> None:
    """The library creates events without timing until the program opens a library that uses
    mgpuEventElapsedTime."""
    (tmp_path / "image").write_bytes(code_object("forum"))
    linked = (str(library()), f"-Wl,-rpath,{library().parent}")
    late = compile_c(tmp_path / "late.so", ASKS, "-shared", "-fPIC", *linked)
    done = run_program(
        program(tmp_path, CLOCK),
        LATE=str(late),
        IMAGE=str(tmp_path / "image"),
        HIPSTUB_LOG=str(tmp_path / "log"),
        MGPU_RT_MANAGER="off",
    )
    assert (done.stdout, done.stderr) == ("0 1 1\n", "")
    assert flags_of_events(tmp_path / "log") == [2, 0, 0]


def test_a_programs_own_function_answers_as_with_stock(tmp_path: Path) -> None:
    """Our library comes first in the search order, and passes the call on to the program's
    mgpuEventElapsedTime. The program's function prints a line, like mlir-air's function."""
    stub = environment()["MGPU_RT_HIP"]
    own = compile_c(tmp_path / "own.so", OWN, "-shared", "-fPIC", stub)
    linked = ("-Wl,--no-as-needed", str(own))
    path = program(tmp_path, CLOCK.replace("elapsed(start, stop)", "found"), *linked)
    done = run_program(path, HIPSTUB_LOG=str(tmp_path / "log"), MGPU_RT_MANAGER="off")
    assert (done.stdout, done.stderr) == ("own 0\n0 1 1\n", "")
    assert flags_of_events(tmp_path / "log") == [0, 0]


#: A function that calls the next definition of mgpuEventElapsedTime.
WRAPPER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
struct elapsed { float milliseconds; long error; };
struct elapsed mgpuEventElapsedTime(void *a, void *b, void *c) {
    struct elapsed (*next)(void *, void *, void *);
    *(void **)&next = dlsym(RTLD_NEXT, "mgpuEventElapsedTime");
    puts("wrapped");
    return next(a, b, c);
}
"""


def test_a_programs_own_function_may_call_this_one(tmp_path: Path) -> None:
    own = compile_c(tmp_path / "own.so", WRAPPER, "-shared", "-fPIC")
    path = program(tmp_path, CLOCK.replace("elapsed(start, stop)", "found"), "-DIMPORTS")
    done = run_program(path, LD_PRELOAD=str(own), MGPU_RT_MANAGER="off")
    assert (done.stdout, done.stderr) == ("wrapped\n0 1 1\n", "")


def recorded(mgpu: Mgpu, stream):
    """Records two events, the second after the first."""
    events = mgpu.EventCreate(), mgpu.EventCreate()
    for event in events:
        mgpu.EventRecord(event, stream)
    mgpu.EventSynchronize(events[1])
    return events


@in_child()
def test_a_process_that_asks_by_a_call_has_times_from_there_on(mgpu: Mgpu) -> None:
    stream, null = mgpu.StreamCreate(), mgpu.null
    before = recorded(mgpu, stream)
    assert mgpu.EventElapsedTime(*before, null).error == 400
    said = mgpu.stderr()
    assert "'hipEventElapsedTime(&milliseconds, start, stop)' failed with" in said
    assert "link with mgpuEventElapsedTime" in said
    after = recorded(mgpu, stream)
    found = mgpu.EventElapsedTime(*after, null)
    assert (found.error, found.milliseconds >= 0) == (0, True)
    for event in (*before, *after):
        mgpu.EventDestroy(event)
    assert mgpu.stub.hipstub_live(b"events") == 0
    assert (mgpu.stderr(), mgpu.stub.hipstub_misuse()) == ("", 0)


@in_child()
def test_nothing_is_done_with_what_is_no_event(mgpu: Mgpu) -> None:
    """If an address belongs to no event, the library writes nothing there, and does not give the
    address to HIP. A call with null pointers asks for times without a word."""
    assert mgpu.EventElapsedTime(mgpu.null, mgpu.null, mgpu.ffi.cast("void *", 77)).error == 400
    assert (mgpu.stderr(), mgpu.stub.hipGetLastError()) == ("", 0)
    stream = mgpu.StreamCreate()
    start, stop = recorded(mgpu, stream)
    wild, text = mgpu.ffi.cast("void *", 0xDEAD0000), mgpu.ffi.new("char[]", b"text")
    into = mgpu.ffi.new("float *", -1)
    for given in (
        (wild, wild, wild),
        (text, start, wild),
        (text, wild, stop),
        (start, wild, stop),
        (wild, start, stream),
    ):
        assert mgpu.EventElapsedTime(*given).error == 400
    assert mgpu.EventElapsedTime(into, start, stop).error == 0
    assert into[0] >= 0
    assert mgpu.EventElapsedTime(start, stop, wild).error == 0
    mgpu.EventDestroy(start)
    assert mgpu.EventElapsedTime(start, stop, wild).error == 400
    assert bytes(mgpu.ffi.buffer(text)) == b"text\0"
    assert mgpu.stub.hipstub_misuse() == 0


@in_child()
def test_a_graph_has_no_times(mgpu: Mgpu) -> None:
    mgpu.EventElapsedTime(mgpu.null, mgpu.null, mgpu.null)
    stream = mgpu.StreamCreate()
    assert mgpu.lib.mgpu_rt_graph_begin() == 0
    events = recorded(mgpu, stream)
    assert mgpu.EventElapsedTime(*events, mgpu.null).error != 0
    assert mgpu.lib.mgpu_rt_graph_end() == mgpu.ffi.NULL
    assert mgpu.stderr().count("it asks for the time between events") == 1
