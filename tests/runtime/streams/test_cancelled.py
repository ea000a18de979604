"""Tests that other threads continue if the program cancels a thread (pthread_cancel), or if threads
set an external stream in turn."""

from __future__ import annotations

from pathlib import Path

from cffi import FFI

from tests.support import recordings
from tests.support.child import Mgpu, in_child, library
from tests.support.compiled import compile_c
from tests.support.folders import folder
from tests.support.known import program, run_program

#: A thread with a pending cancellation calls exit(), and so ends the process.
EXITING = """
#include "program.h"
static void *last(void *unused) {
    pthread_cancel(pthread_self());
    exit(0);
    return unused;
}
int main(void) {
    pthread_t thread;
    mgpuStreamCreate();
    pthread_create(&thread, NULL, last, NULL);
    pthread_join(thread, NULL);
    return 1;
}
"""


def test_an_exit_cannot_be_cancelled(tmp_path: Path) -> None:
    """The recording is complete."""
    trace = tmp_path / "trace"
    done = run_program(program(tmp_path, EXITING), MGPU_RT_TRACE=str(trace), MGPU_RT_MANAGER="off")
    assert done.returncode == 0
    assert recordings.stats(trace)["process"]["ended"] == "exit"


#: Several threads set the same external stream in a loop. In each round, mgpuStreamCreate returns
#: the stream; the thread then destroys the stream and ends its use.
LENDING = """
#include "program.h"
int mgpu_rt_use_stream(void *stream);
enum { THREADS = 4, ROUNDS = 100000 };
static int wrong;
static void *lend(void *stream) {
    for (int i = 0; i < ROUNDS; i++) {
        mgpu_rt_use_stream(stream);
        void *made = mgpuStreamCreate();
        if (made != stream)
            wrong = 1;
        mgpuStreamDestroy(made);
        mgpu_rt_use_stream(0);
    }
    return 0;
}
int lend_in_turn(void *stream) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, lend, stream);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return wrong;
}
"""


@in_child(policies=("builtin",))
def test_a_stream_that_threads_lend_stays_the_callers(mgpu: Mgpu) -> None:
    """While one thread ends its use of the external stream, no other thread mistakes the stream for
    a cached stream and destroys the stream."""
    out = folder("cancelled") / "lending.so"
    compile_c(out, LENDING, "-O1", "-shared", "-fPIC", "-pthread", str(library()))
    ffi = FFI()
    ffi.cdef("int lend_in_turn(void *stream);")
    handle = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipStreamCreate(handle) == 0
    stream = ffi.cast("void *", int(mgpu.stub_ffi.cast("uintptr_t", handle[0])))
    assert ffi.dlopen(str(out)).lend_in_turn(stream) == 0
    assert mgpu.count("hipStreamDestroy") == 0
    assert mgpu.stub.hipStreamSynchronize(handle[0]) == 0
