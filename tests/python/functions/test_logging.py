"""The C library's messages go through Python's logging instead of stderr."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mgpu_rt
from mgpu_rt import _logging
from tests.support.child import Mgpu, environment, in_child
from tests.support.compiled import compile_c
from tests.support.patience import HANG

on_stub = in_child(policies=("builtin",), backends=("stub",))
LOGGER = logging.getLogger("mgpu_rt")
FAILED = "'event' failed with 'hipErrorInvalidValue'"


class Seen(logging.Handler):
    """A handler that stores each line together with the logging level."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []
        self.taken = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))
        self.taken.set()


@contextmanager
def handler(new: logging.Handler | None = None, patience: int = 1000 * HANG) -> Iterator[Seen]:
    LOGGER.propagate = False  # pytest has its own handlers
    LOGGER.setLevel(logging.INFO)
    _logging.PATIENCE_MS = patience
    mgpu_rt.load().use_logging()
    seen = new or Seen()
    LOGGER.addHandler(seen)
    yield seen
    LOGGER.removeHandler(seen)


def fail() -> None:
    mgpu_rt.load().mgpu_rt_report(b"event", 1)


@in_child(policies=("builtin",), backends=("stub",), MGPU_RT_VERBOSE="1", MGPU_RT_DEVICE="none")
def test_a_line_has_the_level_of_its_kind(mgpu: Mgpu) -> None:
    with handler() as seen:
        runtime = mgpu_rt.load()
        assert runtime.mgpuStreamCreate()
        fail()
        assert runtime.mgpu_rt_graph_begin() == 0 and runtime.mgpu_rt_graph_begin() == -1
        assert not runtime.mgpu_rt_graph_end()
    lines = dict((line, level) for level, line in seen.lines)
    assert lines[FAILED] == "ERROR"
    for begin, level in (
        ("mgpu_rt: HIP: ", "INFO"),
        ("mgpu_rt: MGPU_RT_DEVICE='none'", "WARNING"),
        ("mgpu_rt: the graph is not built", "WARNING"),
    ):
        assert [at for line, at in lines.items() if line.startswith(begin)] == [level]
    assert mgpu.stderr() == ""


@on_stub
def test_a_line_goes_to_stderr_where_nobody_logs(mgpu: Mgpu) -> None:
    fail()
    with handler():
        pass
    fail()  # the handler has ended
    assert mgpu.stderr() == f"{FAILED}\n" * 2
    with handler() as seen:
        mgpu_rt.load().use_logging(False)
        fail()
        assert (mgpu.stderr(), seen.lines) == (f"{FAILED}\n", [])
        mgpu_rt.load().use_logging()
        fail()
        assert (mgpu.stderr(), seen.lines) == ("", [("ERROR", FAILED)])


@on_stub
def test_a_filter_that_raises_loses_no_line(mgpu: Mgpu) -> None:
    def refuse(_record: logging.LogRecord) -> bool:
        raise KeyError

    with handler() as seen:
        LOGGER.addFilter(refuse)
        fail()
        LOGGER.removeFilter(refuse)
        fail()
    assert (mgpu.stderr(), seen.lines) == (f"{FAILED}\n", [("ERROR", FAILED)])


@on_stub
def test_lines_of_many_threads_are_all_logged(mgpu: Mgpu) -> None:
    """Threads that Python did not create report lines at the same time as Python's threads."""
    runtime = mgpu_rt.load()
    report = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)(
        ("mgpu_rt_report", ctypes.CDLL(runtime.path))
    )
    c = ctypes.CDLL(None)
    text = ctypes.create_string_buffer(b"event")
    with handler() as seen:
        threads = [threading.Thread(target=fail) for _ in range(20)]
        natives = [ctypes.c_ulong() for _ in range(20)]
        for thread, native in zip(threads, natives, strict=True):
            thread.start()
            assert c.pthread_create(ctypes.byref(native), None, report, text) == 0
        for thread, native in zip(threads, natives, strict=True):
            thread.join(HANG)
            c.pthread_join(native, None)
    errors = [line for line in seen.lines if line[1].startswith("'event' failed with")]
    assert len(errors) == 40
    assert mgpu.stderr() == ""


@on_stub
def test_a_thread_with_the_gil_writes_to_stderr(mgpu: Mgpu) -> None:
    with handler() as seen:
        ctypes.PyDLL(mgpu_rt.load().path).mgpu_rt_report(b"event", 1)
    assert (mgpu.stderr(), seen.lines) == (f"{FAILED}\n", [])


@on_stub
def test_a_handler_may_call_the_library(mgpu: Mgpu) -> None:
    class Failing(Seen):
        def emit(self, record: logging.LogRecord) -> None:
            super().emit(record)
            fail()

    with handler(Failing()) as seen:
        fail()
    assert (mgpu.stderr(), seen.lines) == (f"{FAILED}\n", [("ERROR", FAILED)])


class Waiting(Seen):
    """A handler that sets the event `entered`, and then waits for the event `free`."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.entered = threading.Event(), threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.entered.set()
        self.free.wait(HANG)
        super().emit(record)


def until(event: threading.Event, caller: Callable[[], object]) -> None:
    """Repeats the call until the event is set. On a busy machine, the library may write a line to
    stderr without the handler."""
    while not event.is_set():
        caller()


@on_stub
def test_a_handler_that_waits_for_the_caller_ends_its_wait(mgpu: Mgpu) -> None:
    waiting = Waiting()
    with handler(waiting, patience=50):
        until(waiting.entered, fail)
        mgpu.stderr()
        fail()  # the library does not wait again
        assert (mgpu.stderr(), waiting.lines) == (f"{FAILED}\n", [])
        waiting.free.set()
        waiting.lines.clear()
        until(waiting.taken, fail)
    assert ("ERROR", FAILED) in waiting.lines


#: The thread that reports a line holds a lock and does not hold the GIL. A thread that holds the
#: GIL waits for the lock.
CROSSED = """
#include <pthread.h>
#include <stdatomic.h>
void mgpu_rt_report(const char *, int);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held, waits;
void *report_locked(void *nothing) {
    pthread_mutex_lock(&lock);
    held = 1;
    while (!waits) continue;
    mgpu_rt_report("locked", 1);
    pthread_mutex_unlock(&lock);
    return nothing;
}
void wait_with_the_gil(void) {
    while (!held) continue;
    waits = 1;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}
"""


@on_stub
def test_a_lock_of_the_caller_and_the_gil_are_no_deadlock(mgpu: Mgpu) -> None:
    """The line appears exactly once, on stderr or in the log. If Python had received the line, the
    handler logs the line after the lock is free."""
    with tempfile.TemporaryDirectory() as folder, handler(patience=50) as seen:
        runtime = mgpu_rt.load()
        path = compile_c(Path(folder) / "crossed.so", CROSSED, "-shared", "-fPIC", runtime.path)
        caller = ctypes.c_ulong()
        crossed, c = ctypes.CDLL(path), ctypes.CDLL(None)
        assert c.pthread_create(ctypes.byref(caller), None, crossed.report_locked, None) == 0
        ctypes.PyDLL(path).wait_with_the_gil()
        c.pthread_join(caller, None)
        until(seen.taken, fail)
    assert (mgpu.stderr() + "".join(line for _, line in seen.lines)).count("'locked' failed") == 1


@on_stub
def test_a_caller_that_is_cancelled_leaves_no_lock(mgpu: Mgpu) -> None:
    waiting = Waiting()
    caller, c = ctypes.c_ulong(), ctypes.CDLL(None)
    report = ctypes.CDLL(mgpu_rt.load().path).mgpu_rt_report
    with handler(waiting):
        assert c.pthread_create(ctypes.byref(caller), None, report, b"event") == 0
        assert waiting.entered.wait(HANG)
        assert c.pthread_cancel(caller) == 0
        waiting.free.set()
        c.pthread_join(caller, None)
        fail()
    assert waiting.lines[-1] == ("ERROR", FAILED)


@on_stub
def test_a_child_of_fork_writes_to_stderr_until_it_asks_too(mgpu: Mgpu) -> None:
    with handler() as seen:
        fail()
        if not (child := os.fork()):
            fail()
            mgpu_rt.load().use_logging()
            fail()
            os._exit(len(seen.lines))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert (mgpu.stderr(), seen.lines) == (f"{FAILED}\n", [("ERROR", FAILED)])


AT_EXIT = """
import atexit, ctypes, logging, sys
import mgpu_rt
runtime = mgpu_rt.load()
fail = lambda: runtime.mgpu_rt_report(b"event", 1)
atexit.register(fail)  # runs after the end of logging's thread
logging.basicConfig(format="logged %(levelname)s %(message)s")
runtime.use_logging()
atexit.register(fail)
fail()
class Late:
    def __del__(self, fail=fail): fail()
late = Late()
late.self = late  # collected as the interpreter ends
"""


def test_at_exit_lines_go_to_stderr() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT],
        env=environment(),
        timeout=HANG,
        stderr=subprocess.PIPE,
        text=True,
    )
    logged = f"logged ERROR {FAILED}\n"
    assert (done.returncode, done.stderr) == (0, 2 * logged + 2 * f"{FAILED}\n")
