"""Runs random sequences of the calls that a lowered function makes. Each sequence runs once
directly and once as a graph.

    python -m tests.runtime.graphs.randomly SEED COUNT [--single]

The program runs in the environment of a child (tests/support/child.py); with --single, no other
threads are active.

A sequence has only one result, because its operations are ordered: by streams, by events, by waits
of the host, and by the null stream. The sequence's inputs are on the host, and differ for each
replay. Other threads may be active during a sequence.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable

from tests.support.child import Mgpu
from tests.support.images import code_object

WORDS = 64
BYTES = 4 * WORDS
REPLAYS = 3
Call = Callable[[], None]


class Sequence:
    """One sequence: its inputs, its outputs, and its calls."""

    def __init__(self, mgpu: Mgpu, images: dict[str, object], seed: int) -> None:
        self.mgpu, self.images, self.seed = mgpu, images, seed
        ffi = mgpu.ffi
        self.inputs = [ffi.new(f"float[{WORDS}]") for _ in range(2)]
        self.outputs = [ffi.new(f"float[{WORDS}]") for _ in range(2)]
        self.outside = mgpu.MemAlloc(BYTES, mgpu.null, False)

    def close(self) -> None:
        self.mgpu.MemFree(self.outside, self.mgpu.null)

    def set_inputs(self, of: int) -> None:
        chance = random.Random(f"{self.seed} {of}")
        for array in self.inputs:
            for i in range(0, WORDS, 7):
                array[i] = chance.randrange(1000)

    def run(self) -> None:
        """Makes the sequence's calls, which are the same in each run."""
        Run(self, random.Random(self.seed)).run()

    def results(self) -> list[bytes]:
        """Returns the results as bytes, because a fill may write the bits of a NaN."""
        return [bytes(self.mgpu.ffi.buffer(array)) for array in self.outputs]


class Run:
    """One run of a sequence. The run stores which stream last used each block, and orders new work
    on a block after that stream."""

    def __init__(self, sequence: Sequence, chance: random.Random) -> None:
        self.s, self.chance, self.mgpu = sequence, chance, sequence.mgpu
        self.kept: list[object] = []

    def run(self) -> None:
        mgpu, chance = self.mgpu, self.chance
        self.streams = [mgpu.StreamCreate() for _ in range(chance.choice((1, 2, 2, 3)))]
        self.modules = {name: mgpu.load(image) for name, image in self.s.images.items()}
        self.last: dict[object, object] = {}  # of each place: the stream that used it last
        self.blocks: list[object] = [self.s.outside]
        self.copy(self.s.outside, self.s.inputs[0])
        steps = [self.alloc, self.alloc, self.free, self.fill, self.launch, self.launch, self.add]
        steps += [self.up, self.down, self.across, self.wait, self.reload, self.renew]
        for _ in range(chance.randrange(5, 30)):
            chance.choice(steps)()
        for output in self.s.outputs:
            self.copy(output, chance.choice(self.blocks))
        for block in self.blocks[1:]:
            self.give_back(block)
        for stream in self.streams:
            mgpu.StreamSynchronize(stream)
            mgpu.StreamDestroy(stream)
        for module in self.modules.values():
            mgpu.ModuleUnload(module)

    # ---- order ----

    def on(self, *places: object):
        """Returns a random stream for new work on the given places. The new work follows all
        earlier work on these places."""
        stream = self.chance.choice(self.streams)
        for place in places:
            before = self.last.get(place)
            if before is not None and before != stream:
                self.follow(before, stream)
            self.last[place] = stream
        return stream

    def follow(self, before, after) -> None:
        mgpu = self.mgpu
        if self.chance.random() < 0.3:
            mgpu.StreamSynchronize(before)
            return
        event = mgpu.EventCreate()
        mgpu.EventRecord(event, before)
        if self.chance.random() < 0.3:
            mgpu.EventSynchronize(event)
        else:
            mgpu.StreamWaitEvent(after, event)
        mgpu.EventDestroy(event)

    def wait(self) -> None:
        self.mgpu.StreamSynchronize(self.chance.choice(self.streams))

    def renew(self) -> None:
        """Destroys a stream, and creates another."""
        at = self.chance.randrange(len(self.streams))
        old = self.streams[at]
        self.mgpu.StreamSynchronize(old)
        self.last = {place: stream for place, stream in self.last.items() if stream != old}
        self.mgpu.StreamDestroy(old)
        self.streams[at] = self.mgpu.StreamCreate()

    # ---- memory ----

    def alloc(self) -> None:
        stream = self.chance.choice(self.streams)
        block = self.mgpu.MemAlloc(BYTES, stream, False)
        self.last[block] = stream
        self.copy(block, self.s.inputs[1])
        self.blocks.append(block)

    def give_back(self, block) -> None:
        stream = self.on(block)
        self.mgpu.MemFree(block, stream)
        del self.last[block]

    def free(self) -> None:
        if len(self.blocks) > 1:
            self.give_back(self.blocks.pop(self.chance.randrange(1, len(self.blocks))))

    def fill(self) -> None:
        block, value = self.chance.choice(self.blocks), self.chance.randrange(1 << 15)
        at = self.chance.randrange(0, WORDS, 2)
        place = self.mgpu.ffi.cast("char *", block) + 4 * at
        count = self.chance.randrange(WORDS - at)
        stream = self.on(block)
        if self.chance.random() < 0.5:
            self.mgpu.Memset32(place, value, count, stream)
        else:
            self.mgpu.Memset16(place, value, 2 * count, stream)

    def copy(self, to, source) -> None:
        self.mgpu.Memcpy(to, source, BYTES, self.on(to, source))

    def up(self) -> None:
        self.copy(self.chance.choice(self.blocks), self.chance.choice(self.s.inputs))

    def down(self) -> None:
        self.copy(self.chance.choice(self.s.outputs), self.chance.choice(self.blocks))

    def across(self) -> None:
        if len(self.blocks) > 1:
            self.copy(*self.chance.sample(self.blocks, 2))

    # ---- kernels ----

    def reload(self) -> None:
        name = self.chance.choice(sorted(self.modules))
        self.mgpu.ModuleUnload(self.modules[name])
        self.modules[name] = self.mgpu.load(self.s.images[name])

    def memref(self, block) -> list[object]:
        ffi = self.mgpu.ffi
        return [ffi.new("void **", block), ffi.new("void **", block)] + [
            ffi.new("int64_t *", value) for value in (0, WORDS, 1)
        ]

    def submit(self, module: str, kernel: str, words: list[object], *blocks: object) -> None:
        ffi = self.mgpu.ffi
        params = ffi.new("void *[]", [ffi.cast("void *", word) for word in words])
        function = self.mgpu.function(self.modules[module], kernel)
        self.mgpu.launch(function, self.on(*blocks), block=(WORDS, 1, 1), params=params)

    def launch(self) -> None:
        """Launches layer(from, to, count), which adds one to each number that it reads, and writes
        the sum."""
        if len(self.blocks) < 2:
            return
        source, target = self.chance.sample(self.blocks, 2)
        count = self.mgpu.ffi.new("int64_t *", WORDS)
        words = [*self.memref(source), *self.memref(target), count]
        self.submit("layers", "layer", words, source, target)

    def add(self) -> None:
        block = self.chance.choice(self.blocks)
        amount = self.mgpu.ffi.new("float *", self.chance.randrange(9))
        self.submit("overlap", "add", [*self.memref(block), amount], block)


def check(mgpu: Mgpu, images: dict[str, object], seed: int) -> None:
    """Raises AssertionError if a replay's result differs from the result of a run without a
    graph."""
    sequence = Sequence(mgpu, images, seed)
    sequence.set_inputs(0)
    if seed % 2:
        sequence.run()  # so that the caches are full
    assert mgpu.lib.mgpu_rt_graph_begin() == 0
    sequence.run()
    graph = mgpu.lib.mgpu_rt_graph_end()
    assert graph != mgpu.null, (seed, mgpu.stderr())
    for replay in range(1, 1 + REPLAYS):
        sequence.set_inputs(replay)
        sequence.run()
        plain = sequence.results()
        for array in sequence.outputs:
            mgpu.ffi.memmove(array, b"\0" * BYTES, BYTES)
        stream = mgpu.StreamCreate()
        assert mgpu.lib.mgpu_rt_graph_launch(graph, stream) == 0
        mgpu.StreamSynchronize(stream)
        mgpu.StreamDestroy(stream)
        assert sequence.results() == plain, seed
    mgpu.lib.mgpu_rt_graph_destroy(graph)
    sequence.close()


def other_work(mgpu: Mgpu, image, over: threading.Event) -> None:
    """A second thread's work on its own streams, with blocks as large as the sequence's blocks."""
    while not over.is_set():
        stream = mgpu.StreamCreate()
        module = mgpu.load(image)
        block = mgpu.MemAlloc(BYTES, stream, False)
        mgpu.Memset32(block, 7, WORDS, stream)
        mgpu.StreamSynchronize(stream)
        mgpu.MemFree(block, stream)
        mgpu.ModuleUnload(module)
        mgpu.StreamDestroy(stream)


def run(mgpu: Mgpu, first: int, count: int, *, single: bool) -> None:
    images = {name: mgpu.image(code_object(name)) for name in ("layers", "overlap")}
    over = threading.Event()
    other = threading.Thread(target=other_work, args=(mgpu, images["layers"], over))
    if not single:
        other.start()
    try:
        for seed in range(first, first + count):
            check(mgpu, images, seed)
    finally:
        over.set()
        if not single:
            other.join()
    assert mgpu.stderr() == ""
    if mgpu.on_stub:
        assert mgpu.stub.hipstub_misuse() == 0


if __name__ == "__main__":
    mgpu = Mgpu()
    try:
        run(mgpu, int(sys.argv[1]), int(sys.argv[2]), single="--single" in sys.argv)
    finally:
        os.write(1, mgpu.stderr().encode())  # the test reads stderr
