"""Plays random programs of allocations, copies, fills, kernels, events and frees, and compares them
with a model.

Each thread works on its own streams and buffers, and occasionally passes a buffer to another
thread. If the last work on a buffer was on another stream, the new stream first waits for an event,
as in MLIR's asynchronous lowering. The program orders its streams by events only. If the library
reuses memory too early, or waits too late, a copy back contains a wrong number.

All data are float32 with small integer values: every operation on them is exact.
"""

from __future__ import annotations

import os
import random
import threading
from dataclasses import dataclass, field

import numpy as np

from tests.support.child import Mgpu
from tests.support.images import code_object

KERNEL = "increment"  # adds one to each of the first n elements
COUNTS = (1, 60, 64, 300, 1000, 70_000)  # elements; several of the first share a size of block
HELD = 10  # buffers of a thread

#: With the cache, a copy to pageable memory is complete when the call returns; without the cache,
#: the stub's copy may still be pending.
COMPLETE = os.environ.get("MGPU_RT_CACHE") != "off"


@dataclass
class Buffer:
    address: object
    content: np.ndarray
    stream: object | None  # the stream that used the buffer last; None: idle
    known: np.ndarray  # the elements that were ever written


@dataclass
class Exchange:
    """Idle buffers that are being passed from thread to thread."""

    buffers: list[Buffer] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Worker:
    """One thread of a program."""

    def __init__(self, mgpu: Mgpu, seed: int, streams: int, exchange: Exchange) -> None:
        self.mgpu, self.ffi = mgpu, mgpu.ffi
        self.random = random.Random(seed)
        self.streams = [mgpu.StreamCreate() for _ in range(streams)]
        self.buffers: list[Buffer] = []
        self.exchange = exchange
        self.module = mgpu.load(mgpu.image(code_object("churn")))
        self.function = mgpu.function(self.module, KERNEL)
        self.checked = 0
        self.error: BaseException | None = None

    def run(self, steps: int) -> None:
        try:
            for _ in range(steps):
                self.step()
            for buffer in list(self.buffers):
                self.check(buffer)
                self.free(buffer)
            for stream in self.streams:
                self.mgpu.StreamSynchronize(stream)
                self.mgpu.StreamDestroy(stream)
        except BaseException as error:
            self.error = error

    def step(self) -> None:
        if len(self.buffers) < 2 or (len(self.buffers) < HELD and self.random.random() < 0.25):
            self.alloc()
            return
        work = (self.fill, self.upload, self.copy, self.launch, self.check, self.free)
        other = (self.synchronise, self.synchronise_event, self.renew_stream, self.hand_over)
        if self.random.random() < 0.85:
            self.random.choice(work)(self.random.choice(self.buffers))
        else:
            self.random.choice(other)()

    # ---- order ----

    def stream(self):
        return self.random.choice(self.streams)

    def order(self, stream, *buffers: Buffer) -> None:
        """Orders a stream's next work after the last work on each of `buffers`."""
        for last in {buffer.stream for buffer in buffers} - {stream, None}:
            event = self.mgpu.EventCreate()
            self.mgpu.EventRecord(event, last)
            self.mgpu.StreamWaitEvent(stream, event)
            self.mgpu.EventDestroy(event)
        for buffer in buffers:
            buffer.stream = stream

    # ---- memory ----

    def alloc(self) -> None:
        count = self.random.choice(COUNTS)
        stream = None if self.random.random() < 0.1 else self.stream()
        address = self.mgpu.MemAlloc(4 * count, stream or self.mgpu.null, False)
        assert address != self.mgpu.null
        content, known = np.zeros(count, np.float32), np.zeros(count, bool)
        self.buffers.append(Buffer(address, content, stream, known))

    def free(self, buffer: Buffer) -> None:
        """Frees a buffer on the stream that last used it, on a stream that waits for the buffer's
        last work, or on the null stream."""
        choice = self.random.random()
        self.buffers.remove(buffer)
        if choice < 0.15 or buffer.stream is None:
            self.mgpu.MemFree(buffer.address, self.mgpu.null)
            return
        stream = buffer.stream if choice < 0.7 else self.stream()
        self.order(stream, buffer)
        self.mgpu.MemFree(buffer.address, stream)

    # ---- work ----

    def fill(self, buffer: Buffer) -> None:
        stream, count = self.stream(), self.random.randint(1, len(buffer.content))
        value = np.float32(self.random.randint(0, 1000))
        self.order(stream, buffer)
        self.mgpu.Memset32(buffer.address, int(value.view(np.int32)), count, stream)
        buffer.content[:count], buffer.known[:count] = value, True

    def upload(self, buffer: Buffer) -> None:
        """Copies to the device; the caller may overwrite the source when the call returns."""
        stream, count = self.stream(), self.random.randint(1, len(buffer.content))
        source = np.full(count, self.random.randint(0, 1000), np.float32)
        source[:: self.random.randint(1, 9)] += 1
        self.order(stream, buffer)
        self.mgpu.Memcpy(buffer.address, self.ffi.from_buffer(source), 4 * count, stream)
        buffer.content[:count], buffer.known[:count] = source, True
        source[:] = -1

    def copy(self, buffer: Buffer) -> None:
        stream, source = self.stream(), self.random.choice(self.buffers)
        count = min(len(buffer.content), len(source.content))
        if source is buffer:
            return
        self.order(stream, buffer, source)
        self.mgpu.Memcpy(buffer.address, source.address, 4 * count, stream)
        buffer.content[:count], buffer.known[:count] = (
            source.content[:count],
            source.known[:count],
        )

    def launch(self, buffer: Buffer) -> None:
        stream, count = self.stream(), self.random.randint(1, len(buffer.content))
        self.order(stream, buffer)
        address = int(self.ffi.cast("uintptr_t", buffer.address))
        words = self.ffi.new("uint64_t[6]", [address, address, 0, len(buffer.content), 1, count])
        params = self.ffi.new("void *[6]", [words + i for i in range(6)])
        self.mgpu.launch(self.function, stream, ((count + 255) // 256, 1, 1), (256, 1, 1), params)
        buffer.content[:count] += 1

    def check(self, buffer: Buffer) -> None:
        """Copies to pageable memory, which is complete when the call returns."""
        stream, count = self.stream(), self.random.randint(1, len(buffer.content))
        out = np.full(count, -7, np.float32)
        self.order(stream, buffer)
        self.mgpu.Memcpy(self.ffi.from_buffer(out), buffer.address, 4 * count, stream)
        if self.random.random() < 0.5 or not COMPLETE:
            self.mgpu.StreamSynchronize(stream)
        known = buffer.known[:count]
        np.testing.assert_array_equal(out[known], buffer.content[:count][known])
        self.checked += 1

    # ---- other steps ----

    def synchronise(self) -> None:
        stream = self.stream()
        self.mgpu.StreamSynchronize(stream)

    def synchronise_event(self) -> None:
        event = self.mgpu.EventCreate()
        self.mgpu.EventRecord(event, self.stream())
        self.mgpu.EventSynchronize(event)
        self.mgpu.EventDestroy(event)

    def renew_stream(self) -> None:
        """Destroys a stream with pending work, after an event, as async.execute regions do."""
        if len(self.streams) < 2:
            return
        old = self.streams.pop(self.random.randrange(len(self.streams)))
        mine = [buffer for buffer in self.buffers if buffer.stream == old]
        if mine:
            self.order(self.stream(), *mine)
        self.mgpu.StreamDestroy(old)
        self.streams.append(self.mgpu.StreamCreate())

    def hand_over(self) -> None:
        """Passes a block to its next owner after a synchronise, as a program would."""
        buffer = self.random.choice(self.buffers)
        if buffer.stream is not None:
            self.mgpu.StreamSynchronize(buffer.stream)
        buffer.stream = None
        self.buffers.remove(buffer)
        with self.exchange.lock:
            self.exchange.buffers.append(buffer)
            at = self.random.randrange(len(self.exchange.buffers))
            self.buffers.append(self.exchange.buffers.pop(at))


def run(mgpu: Mgpu, seed: int, threads: int, streams: int, steps: int) -> int:
    """Runs one program; returns how often contents were compared. Raises the exceptions that the
    threads of the program raised."""
    exchange = Exchange()
    workers = [Worker(mgpu, 1000 * seed + i, streams, exchange) for i in range(threads)]
    running = [threading.Thread(target=worker.run, args=(steps,)) for worker in workers]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for buffer in exchange.buffers:
        mgpu.MemFree(buffer.address, mgpu.null)
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    return sum(worker.checked for worker in workers)
