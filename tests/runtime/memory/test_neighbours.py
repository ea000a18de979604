"""Tests that idle memory reaches other processes on the device.

The processes are forks that share the memory of the stub's device (HIPSTUB_SHARED), 200 MB. One
process frees 72 MB. The other process then allocates 160 MB.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.child import Mgpu, in_cases, in_child
from tests.support.known import alloc, program, run_program
from tests.support.patience import wait_until

MB = 1 << 20
DEVICE = {
    "HIPSTUB_SHARED": "1",
    "HIPSTUB_MEMORY": str(200 * MB),
    "MGPU_RT_MEMORY_LIMIT": "1",
}
SHARED = {**DEVICE, "policies": ("builtin",)}
FREED, WANTED = 72 * MB, 160 * MB


def end_with_the_parent() -> None:
    kill_with_parent = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(kill_with_parent, signal.SIGKILL)


class Process:
    """A fork of this process, in which `play` runs. Whenever `play` yields, the fork says whether
    the yielded value is true, and waits until this process lets the fork go on."""

    def __init__(self, play: Callable[[Process], Iterator[object]]) -> None:
        place()
        self.to, self.back = os.pipe(), os.pipe()
        self.id = os.fork()
        if self.id == 0:
            end_with_the_parent()
            status = 1
            try:
                for said in play(self):
                    self.say(said)
                    if not os.read(self.to[0], 1):
                        break
                status = 0
            except BaseException:
                traceback.print_exc(file=sys.stdout)
                sys.stdout.flush()
            finally:
                os._exit(status)
        os.close(self.back[1])

    def say(self, what: object) -> None:
        os.write(self.back[1], b"+" if what else b"-")

    def waits(self) -> bool:
        """Waits until the fork says whether a value is true, and returns that."""
        said = os.read(self.back[0], 1)
        assert said
        return said == b"+"

    def goes_on(self) -> None:
        os.write(self.to[1], b".")

    def is_killed(self) -> None:
        os.kill(self.id, signal.SIGKILL)
        os.waitpid(self.id, 0)


@functools.cache
def place() -> int:
    """Returns the place of the stub's device. A fork has the place of the process that loaded the
    stub."""
    return os.getpid() << 8


def is_refused(mgpu: Mgpu) -> bool:
    """Returns whether HIP has no memory for a large block."""
    return mgpu.MemAlloc(WANTED, mgpu.null, False) == mgpu.null


def free_much(mgpu: Mgpu, stream: object = None) -> None:
    """Frees 72 MB, and waits until other processes may ask for these bytes."""
    mgpu.MemFree(alloc(mgpu, FREED, stream), stream or mgpu.null)
    assert wait_until(lambda: is_offered(mgpu))


def is_offered(mgpu: Mgpu) -> bool:
    """Returns whether this process has locked the device's byte, or has returned the memory."""
    if mgpu.stub.hipstub_live(b"bytes") < FREED:
        return True
    rows = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(row[1] == "OFDLCK" and row[-2] == str(place()) for row in rows)


def threads() -> list[Path]:
    """Returns the folders of this process's threads that return idle memory."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread may end in between
            found += [task] if (task / "comm").read_text() == "mgpu_rt idle\n" else []
    return found


# ---- a shortage ----------------------------------------------------------------------------------


@in_child(**SHARED)
def test_a_shortage_asks_the_other_process(mgpu: Mgpu) -> None:
    def first(_: Process) -> Iterator[object]:
        free_much(mgpu)
        yield True
        yield mgpu.stub.hipstub_count(b"hipFree") == 1

    other = Process(first)
    assert other.waits()
    assert not is_refused(mgpu)
    assert mgpu.count("hipMalloc") in (1, 3)  # 1: the memory was not used for a second
    other.goes_on()
    assert other.waits()
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipPeekAtLastError() == 0
    other.is_killed()


@in_child(**SHARED)
def test_a_process_that_needs_its_memory_keeps_the_memory(mgpu: Mgpu) -> None:
    """The error is HIP's, and no call of HIP follows if no process has idle memory."""

    def first(_: Process) -> Iterator[object]:
        block = alloc(mgpu, FREED)
        mgpu.MemFree(alloc(mgpu, MB), mgpu.null)
        yield block != mgpu.null

    other = Process(first)
    assert other.waits()
    assert is_refused(mgpu)
    assert mgpu.count("hipMalloc") == 2
    assert mgpu.stub.hipPeekAtLastError() == 2
    assert mgpu.stderr().count("failed with 'hipErrorOutOfMemory'") == 1
    other.is_killed()


@in_child(**SHARED)
def test_a_killed_process_is_not_asked(mgpu: Mgpu) -> None:
    """A child of the killed process still has the descriptors of the fork, but not those
    of the library, which its fork has closed."""

    def first(process: Process) -> Iterator[object]:
        free_much(mgpu)
        begun = os.pipe()
        if os.fork() == 0:
            os.write(begun[1], b".")
            os.close(process.to[1])
            os.read(process.to[0], 1)  # until the test ends
            os._exit(0)
        yield os.read(begun[0], 1)

    other = Process(first)
    assert other.waits()
    os.kill(other.id, signal.SIGKILL)
    os.waitpid(other.id, 0)
    assert alloc(mgpu, 64 * MB) != mgpu.null
    assert is_refused(mgpu)
    assert mgpu.count("hipMalloc") == 3


# ---- work ----------------------------------------------------------------------------------------


def works_on(mgpu: Mgpu, stream: object) -> Iterator[object]:
    """Frees much memory while the stream has work. Yields whether hipFree was not called. Then
    waits for the work."""
    small, large = alloc(mgpu, MB, stream), alloc(mgpu, FREED, stream)
    mgpu.lib.mgpuMemset32(small, 1, 64, stream)
    mgpu.MemFree(large, stream)
    assert wait_until(lambda: is_offered(mgpu))
    yield mgpu.pending(stream) == 1
    yield mgpu.count("hipFree") == 0 and mgpu.pending(stream) == 1
    mgpu.StreamSynchronize(stream)
    yield True


@in_cases(("ours", "external"), **DEVICE, HIPSTUB_ASYNC="held")
def test_no_memory_is_returned_while_a_stream_has_work(mgpu: Mgpu, whose: str) -> None:
    make_stream = mgpu.StreamCreate if whose == "ours" else mgpu.external_stream
    other = Process(lambda _: works_on(mgpu, make_stream()))
    assert other.waits()
    assert is_refused(mgpu)
    other.goes_on()
    assert other.waits()
    other.goes_on()
    assert other.waits()
    assert wait_until(lambda: not is_refused(mgpu))
    other.is_killed()


@in_child(**SHARED, HIPSTUB_ASYNC="held")
def test_a_busy_process_returns_memory_at_its_next_free(mgpu: Mgpu) -> None:
    """With stock, hipFree waits there for all work."""

    def second(_: Process) -> Iterator[object]:
        yield True
        assert wait_until(lambda: not is_refused(mgpu))
        yield True

    other = Process(second)
    assert other.waits()
    stream = mgpu.StreamCreate()
    free_much(mgpu, stream)
    block = alloc(mgpu, MB, stream)
    other.goes_on()

    def is_returned() -> bool:
        mgpu.lib.mgpuMemset32(block, 1, 64, stream)
        mgpu.MemFree(alloc(mgpu, 4096, stream), stream)
        return mgpu.stub.hipstub_live(b"bytes") < FREED

    assert wait_until(is_returned)
    assert other.waits()
    other.is_killed()


# ---- a process without the library ---------------------------------------------------------------


@in_child(**SHARED)
def test_a_process_without_the_library_gets_memory_that_nobody_uses(mgpu: Mgpu) -> None:
    def second(_: Process) -> Iterator[object]:
        place = mgpu.stub_ffi.new("void **")
        yield True
        yield wait_until(lambda: mgpu.stub.hipMalloc(place, WANTED) == 0)

    other = Process(second)
    assert other.waits()
    free_much(mgpu)
    other.goes_on()
    assert other.waits()
    assert mgpu.count("hipFree") == 1
    assert mgpu.stderr() == ""
    other.is_killed()


@in_child(**SHARED)
def test_a_capture_goes_on_while_memory_is_returned(mgpu: Mgpu) -> None:
    captured, graph = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("void **")
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, FREED, stream)
    assert mgpu.stub.hipStreamCreateWithFlags(captured, 0) == 0
    assert mgpu.stub.hipStreamBeginCapture(captured[0], 0) == 0  # 0: forbidden in all threads
    mgpu.MemFree(block, stream)
    assert wait_until(lambda: mgpu.count("hipFree") == 1)
    assert wait_until(lambda: mgpu.stub.hipstub_live(b"bytes") == 0)
    assert mgpu.stub.hipStreamEndCapture(captured[0], graph) == 0


@in_child(**SHARED)
def test_the_thread_blocks_all_signals(mgpu: Mgpu) -> None:
    free_much(mgpu)
    assert wait_until(threads)
    (thread,) = threads()
    status = (thread / "status").read_text()
    blocked = int(status.split("SigBlk:")[1].split()[0], 16)
    unblockable = {signal.SIGKILL, signal.SIGSTOP, 32, 33}
    for number in range(1, 65):
        assert blocked >> number - 1 & 1 or number in unblockable


#: A program in which no thread starts. It prints how often the library tried to start one.
NO_THREAD = r"""
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void *mgpuMemAlloc(uint64_t bytes, void *stream, bool host_shared);
static int tried;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *data) {
    (void)thread, (void)attributes, (void)run, (void)data;
    tried++;
    return EAGAIN;
}

int main(void) {
    for (int block = 0; block < 10; block++)
        if (!mgpuMemAlloc(72 << 20, NULL, false))
            return 1;
    printf("%d\n", tried);
    return 0;
}
"""


def test_a_thread_that_does_not_start_is_not_tried_again(tmp_path: Path) -> None:
    done = run_program(program(tmp_path, NO_THREAD), MGPU_RT_MANAGER="off")
    assert done.stdout == "1\n", done.stderr


@in_child(**SHARED)
def test_the_exit_waits_for_a_free_that_is_under_way(mgpu: Mgpu) -> None:
    def first(process: Process) -> Iterator[object]:
        libc, handler = ctypes.CDLL(None), ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        at_the_end = handler(lambda _: process.say(mgpu.stub.hipstub_live(b"bytes") == 0))
        libc.__cxa_atexit(at_the_end, None, None)
        assert mgpu.stub.hipstub_set_delay(b"hipFree:3000000") == 0
        mgpu.MemFree(alloc(mgpu, FREED), mgpu.null)
        yield wait_until(lambda: mgpu.count("hipFree") == 1)
        libc.exit(0)

    other = Process(first)
    assert other.waits()
    other.goes_on()
    assert other.waits()
    os.waitpid(other.id, 0)


# ---- the file ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@in_child(**SHARED)
def test_a_file_of_another_user_is_not_used(mgpu: Mgpu) -> None:
    user = 60000 + os.getpid() % 5000
    path = Path(f"/dev/shm/mgpu_rt-{user}")
    path.touch()
    path.chmod(0o666)
    os.seteuid(user)
    try:
        mgpu.MemFree(alloc(mgpu, FREED), mgpu.null)
        assert wait_until(lambda: mgpu.count("hipFree") == 1)  # without a file, too
        assert str(path) not in Path("/proc/self/maps").read_text()
    finally:
        os.seteuid(0)
        path.unlink()


@in_child(**SHARED)
def test_a_program_may_close_all_descriptors(mgpu: Mgpu) -> None:
    free_much(mgpu)
    os.closerange(48, 1000)
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
    assert wait_until(lambda: mgpu.count("hipFree") == 1)
    for file in files:
        os.close(file)
