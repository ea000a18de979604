"""Tests the stub's asynchronous streams: when streams wait, and when streams read memory."""

from __future__ import annotations

import threading

from tests.python.snippets.library import DEFAULT, HOST_TO_DEVICE
from tests.support.patience import HANG, wait_until
from tests.support.stub import Stub, on_stub


class Gate:
    """A kernel that runs until the test releases it."""

    def __init__(self, hip: Stub) -> None:
        self._opened = threading.Event()
        hip.kernel_body("test_func", self._run)
        self.kernel = hip.kernel()

    def _run(self, _params: object) -> None:
        self._opened.wait(HANG)

    def open(self) -> None:
        self._opened.set()


@on_stub(HIPSTUB_ASYNC="0")
def test_streams_run_by_themselves(hip: Stub) -> None:
    gate, busy, idle, event = Gate(hip), hip.stream(), hip.stream(), hip.event()
    hip.launch(busy, function=gate.kernel)
    hip.hipEventRecord(event, busy)
    assert hip.lib.hipstub_pending(busy) == 2
    assert (hip.hipStreamQuery(busy), hip.hipStreamQuery(idle)) == (600, 0)
    assert (hip.hipEventQuery(event), hip.hipGetLastError()) == (600, 600)
    hip.hipStreamWaitEvent(idle, event, 0)
    assert hip.hipStreamQuery(idle) == 600
    independent = hip.made("hipStreamCreateWithFlags", "hipStream_t", 1)
    hip.hipMemcpyAsync(hip.memory(8), hip.new("char[]", 8), 8, DEFAULT, independent)
    assert hip.hipStreamSynchronize(independent) == 0
    gate.open()
    assert hip.hipStreamSynchronize(idle) == 0
    assert (hip.hipStreamQuery(busy), hip.hipEventQuery(event)) == (0, 0)


@on_stub(HIPSTUB_ASYNC="held")
def test_held_streams_do_what_is_waited_for(hip: Stub) -> None:
    """A held stream executes its work if the program waits for the stream, or for a stream that
    depends on this work. An event record counts as work."""
    first, second, idle, event = hip.stream(), hip.stream(), hip.stream(), hip.event()
    marked, mark = hip.stream(), hip.event()
    hip.hipEventRecord(mark, marked)
    hip.launch(first)
    hip.hipEventRecord(event, first)
    hip.launch(first)
    hip.hipStreamWaitEvent(second, event, 0)
    hip.launch(second)
    hip.launch(idle)
    assert hip.hipStreamSynchronize(second) == 0
    assert [hip.lib.hipstub_pending(s) for s in (first, second, idle, marked)] == [1, 0, 1, 1]
    assert hip.hipEventQuery(mark) == 600
    assert hip.hipDeviceSynchronize() == 0
    assert [hip.hipStreamQuery(s) for s in (first, second, idle)] == [0] * 3


@on_stub(HIPSTUB_ASYNC="held", HIPSTUB_REUSE="1")
def test_a_record_that_is_over_late_leaves_a_later_event_its_time(hip: Stub) -> None:
    """The event was destroyed while its record was pending, and HIP reused its handle."""
    late, stream, event = hip.stream(), hip.stream(), hip.event()
    hip.hipEventRecord(event, late)
    hip.hipEventDestroy(event)
    start, stop = hip.event(), hip.event()
    assert start == event
    for mark in (start, stop):
        hip.hipEventRecord(mark, stream)
    hip.hipStreamSynchronize(stream)
    hip.hipStreamSynchronize(late)
    milliseconds = hip.new("float *", -1.0)
    assert hip.hipEventElapsedTime(milliseconds, start, stop) == 0
    assert milliseconds[0] >= 0


@on_stub(HIPSTUB_ASYNC="held2")
def test_held2_streams_do_what_two_threads_wait_for(hip: Stub) -> None:
    stream, ended = hip.stream(), []
    hip.launch(stream)

    def wait() -> None:
        ended.append(hip.hipStreamSynchronize(stream))

    threads = [threading.Thread(target=wait) for _ in range(2)]
    threads[0].start()
    assert wait_until(lambda: hip.lib.hipstub_waiters(stream) == 1)
    assert (hip.lib.hipstub_pending(stream), ended) == (1, [])
    threads[1].start()
    for thread in threads:
        thread.join(HANG)
    assert ended == [0, 0]


@on_stub(HIPSTUB_ASYNC="0")
def test_the_null_stream_keeps_its_order(hip: Stub) -> None:
    gate, busy, other = Gate(hip), hip.stream(), hip.stream()
    hip.launch(busy, function=gate.kernel)
    hip.hipMemcpyAsync(hip.memory(8), hip.new("char[]", 8), 8, DEFAULT, hip.null)
    hip.hipMemcpyAsync(hip.memory(8), hip.new("char[]", 8), 8, DEFAULT, other)
    assert [hip.hipStreamQuery(s) for s in (busy, hip.null, other)] == [600] * 3
    gate.open()
    assert hip.hipStreamSynchronize(other) == 0
    assert [hip.hipStreamQuery(s) for s in (busy, hip.null, other)] == [0] * 3


@on_stub(HIPSTUB_ASYNC="0")
def test_copies_read_pageable_memory_at_once_and_pinned_memory_late(hip: Stub) -> None:
    gate, stream = Gate(hip), hip.stream()
    pinned = hip.made("hipHostMalloc", "void *", 8, 0)
    pageable, to = hip.new("char[]", b"earlier"), hip.memory(16)
    hip.ffi.memmove(pinned, b"earlier", 7)
    hip.launch(stream, function=gate.kernel)
    hip.hipMemcpyAsync(to, pageable, 8, HOST_TO_DEVICE, stream)
    hip.hipMemcpyAsync(hip.offset(to, 8), pinned, 8, HOST_TO_DEVICE, stream)
    for source in (pageable, pinned):
        hip.ffi.memmove(source, b"later!!", 7)
    gate.open()
    hip.hipStreamSynchronize(stream)
    assert hip.bytes_at(to, 7) == b"earlier"
    assert hip.bytes_at(hip.offset(to, 8), 7) == b"later!!"
