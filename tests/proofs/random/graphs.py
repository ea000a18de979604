"""Graphs that the library builds. If a runtime builds no graph, the program makes the calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.proofs.random.actions import (
    KERNELS,
    MOST_IN_KERNEL,
    Actions,
    Bytes,
    enter_into,
    find_function,
    write_words,
)
from tests.proofs.random.model import (
    ALLOCATED,
    MGPU,
    PAGES,
    THREAD_END,
    Buffer,
    Function,
    Program,
    Stream,
    digest,
    pattern,
)

ACTIONS: Actions = []
action = enter_into(ACTIONS)

PAGE_WORDS = 1024


@dataclass
class Segment:
    """The calls of a graph, and what they do to the blocks. Each call follows the earlier calls
    that use its blocks."""

    program: Program
    thread: int
    chance: random.Random
    count: int  # words of each block
    blocks: list[Buffer]
    host: Buffer  # what the first calls copy to the blocks
    out: Buffer  # where the last call copies a block
    function: Function | None
    streams: list[Stream] = field(default_factory=list)
    effects: list[Callable[[], None]] = field(default_factory=list)

    def write(self) -> None:
        program, thread = self.program, self.thread
        for _ in range(self.chance.randrange(1, 4)):
            made = Stream(program.index("stream") or 0, MGPU, thread)
            program.ask("ok", thread, "stream", MGPU, made)
            self.streams.append(made)
        for block in self.blocks:
            self.copy(block, self.host)
        steps = (self.fill, self.fill, self.across, self.across, self.mix, self.mix, self.borrow)
        for _ in range(self.chance.randrange(1, 9)):
            self.chance.choice(steps)()
        self.copy(self.out, self.chance.choice(self.blocks))
        for stream in self.streams:
            program.sync(thread, MGPU, stream)
            program.say(thread, "unstream", MGPU, stream)

    def on(self, *buffers: Buffer) -> Stream:
        """Returns a stream whose next work follows the work on these blocks."""
        stream = self.chance.choice(self.streams)
        self.program.order(self.thread, stream, self.chance.randrange(256), *buffers)
        self.program.submit(stream, *buffers, seen=True)
        return stream

    def copy(self, to: Buffer, source: Buffer) -> None:
        stream, count = self.on(to, source), self.count
        self.program.say(self.thread, "copy", MGPU, to, 0, source, 0, count, stream)
        self.effects.append(lambda: write_words(to, 0, source.content[:count].copy()))

    def fill(self, block: Buffer | None = None) -> None:
        block, value = block or self.chance.choice(self.blocks), self.chance.randrange(1 << 16)
        at = self.chance.randrange(self.count)
        count = self.chance.randrange(1, self.count - at + 1)
        stream = self.on(block)
        self.program.say(self.thread, "fill", MGPU, block, at, count, value, stream)
        words = np.full(count, value, np.uint32)
        self.effects.append(lambda: write_words(block, at, words))

    def across(self) -> None:
        if len(self.blocks) > 1:
            self.copy(*self.chance.sample(self.blocks, 2))

    def mix(self) -> None:
        function, block = self.function, self.chance.choice(self.blocks)
        if function is None:
            return
        stream, k, count = self.on(block), self.chance.randrange(256), self.count
        number = KERNELS.index("mix")
        self.program.say(self.thread, "launch", MGPU, function, number, stream, block, count, k)
        add = np.uint32(k) + np.uint32(function.module.value)
        self.effects.append(
            lambda: write_words(block, 0, block.content[:count] * np.uint32(3) + add)
        )

    def borrow(self) -> None:
        """Copies a block by way of a block that the graph allocates and frees."""
        program, thread = self.program, self.thread
        index = program.index("buffer")
        if index is None or program.memory:
            return
        inner = Buffer(index, MGPU, thread, ALLOCATED, np.zeros(self.count, np.uint32))
        stream = self.on(inner)
        program.ask("ok", thread, "malloc", MGPU, inner, 4 * self.count, stream, 0)
        source, target = self.chance.choice(self.blocks), self.chance.choice(self.blocks)
        self.copy(inner, source)
        self.fill(inner)
        self.copy(target, inner)
        program.say(thread, "free", MGPU, inner, self.on(inner))


def _host_buffer(program: Program, thread: int, count: int) -> Buffer:
    """Maps host memory: the stub of HIP may have had an address of the heap as device memory."""
    made = Buffer(program.index("buffer") or 0, MGPU, thread, PAGES, np.zeros(count, np.uint32))
    program.say(thread, "pages", made, -(-count // PAGE_WORDS), 0)
    return made


@action(3)
def graph(program: Program, thread: int, b: Bytes) -> None:
    """Builds a graph of calls, and replays it on other inputs."""
    number = program.index("graph")
    blocks = [x for x in program.buffers if x.kind == ALLOCATED]
    if number is None or not blocks or thread >= THREAD_END or program.made.get("buffer", 0) > 400:
        return
    blocks = blocks[b[0] % len(blocks) :][:3]
    count = min(MOST_IN_KERNEL, *(len(x.content) for x in blocks))
    chance = random.Random(bytes(b))
    module = program.pick([one for one in program.modules if one.who == MGPU], b[2])
    function = find_function(program, thread, module, "mix", 1) if module else None
    host, out = (_host_buffer(program, thread, count) for _ in range(2))
    for block in blocks:
        program.settle(thread, b[3], block)
    if function is not None and function.who == MGPU:
        program.touch(thread, function, module)
    else:
        function = None
    segment = Segment(program, thread, chance, count, blocks, host, out, function)
    program.say(thread, "hostset", host, count, b[4])
    program.say(thread, "graph", number)
    alone, program.is_alone = program.is_alone, True
    segment.write()
    program.is_alone = alone
    program.say(thread, "endgraph", number)
    for replay in range(1 + b[1] % 3):
        if replay:
            program.say(thread, "hostset", host, count, b[4] + replay)
            program.say(thread, "rerun", number)
        host.content[:] = pattern(count, b[4] + replay)
        for effect in segment.effects:
            effect()
        program.ask(digest(out.content), thread, "hostsee", out, count)
    program.say(thread, "nograph", number)
    for block in blocks:
        block.last = None
