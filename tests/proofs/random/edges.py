"""Rare actions: other devices, mapped pages, many handles, calls that HIP refuses, blocked
streams."""

from __future__ import annotations

import numpy as np

from tests.proofs.programs import images
from tests.proofs.random.actions import (
    Actions,
    Bytes,
    allocate_block,
    drawn_words,
    enter_into,
    fill_block,
    write_words,
)
from tests.proofs.random.model import (
    ALLOCATED,
    BLOCKS,
    MGPU,
    MGPU_REGISTERED,
    PAGES,
    REGISTERED,
    STREAMS,
    THREAD_END,
    Buffer,
    Crowd,
    Program,
    join,
    os_thread,
    pattern,
)

BUFFERS = 0  # a kind of object (player/edges.c)

ACTIONS: Actions = []
action = enter_into(ACTIONS)


@action(4)
def device(program: Program, thread: int, b: Bytes) -> None:
    """Changes the thread's current device."""
    if program.others():
        program.enter(thread, program.pick(program.others(), b[0]), b[1] % 2)


@action(3)
def far_wait(program: Program, thread: int, b: Bytes) -> None:
    """Makes the host or a stream of this device wait for another device's event or stream."""
    here = program.device
    for there in program.others():
        theirs = program.held[there]
        event, other = program.pick(theirs.events, b[0]), program.pick(theirs.streams[1:], b[0])
        own = program.pick(program.streams, b[2])
        if b[3] % 3 == 2 and other is not None:
            program.sync(thread, b[1] % 2, other)
        elif event is not None and b[3] % 3 == 1:
            program.touch(thread, event)
            program.say(thread, "eventsync", b[1] % 2, event)
            join(program.clock(thread), event.clock)
        elif event is not None:
            program.touch(thread, event)
            program.prepare(thread, own)
            program.say(thread, "waitevent", b[1] % 2, event, own)
            join(own.clock, event.clock)
        assert program.device == here


@action(3)
def far_end(program: Program, thread: int, b: Bytes) -> None:
    """Destroys a block, an event or a stream of one device while another device is current. Before
    a block or a stream is destroyed, the program waits for pending work on the block or stream."""
    here = program.device
    for there in program.others():
        program.enter(thread, there, b[1] % 2)
        kind = b[0] % 3
        ends = [x for x in program.buffers if x.kind == ALLOCATED]
        thing = program.pick((ends, program.events, program.streams[1:])[kind], b[2])
        if thing is None or (kind == 2 and any(one.stream is thing for one in program.crowds)):
            program.enter(thread, here, b[1] % 2)
            continue
        if kind == 0:
            program.settle(thread, b[3], thing)
            program.buffers.remove(thing)
        elif kind == 1:
            program.events.remove(thing)
        else:
            program.leave(thread, thing, b[3])
            program.streams.remove(thing)
        program.enter(thread, here, b[1] % 2)
        if kind == 0:
            own = program.pick(program.streams, b[4])
            program.touch(thread, thing, own)
            program.say(thread, "free", MGPU, thing, own)
            program.submit(own, real=False)
        elif kind == 1:
            program.unevent(thread, b[3] % 2, thing)
        else:
            program.touch(thread, thing)
            program.say(thread, "unstream", int(thing.who != MGPU), thing)


@action(3)
def far_copy(program: Program, thread: int, b: Bytes) -> None:
    """Copies from a block of another device into a block of the current device."""
    here = program.device
    for there in program.others():
        program.enter(thread, there, b[1] % 2)
        known = [x for x in program.buffers if x.known and x.kind == ALLOCATED]
        source = program.pick(known, b[0])
        if source is not None:
            program.settle(thread, b[3], source)
        program.enter(thread, here, b[1] % 2)
        target = program.pick([x for x in program.buffers if x.kind == ALLOCATED], b[2])
        if source is None or target is None:
            continue
        own = program.pick(program.streams, b[4])
        program.order(thread, own, b[3], target)
        count = min(source.known, len(target.content))
        program.submit(own, target, source, seen=True)
        program.say(thread, "copy", MGPU, target, 0, source, 0, count, own)
        write_words(target, 0, source.content[:count])
        # The copy runs on a stream of the current device, so waiting for a stream of the source's
        # device would not help.
        program.sync(thread, MGPU, own)
        source.last = None


UNMAPPED, MOVED, DROPPED, _, FORKED = range(5)  # the ways to replace pages (host.c)
REPLACED = (None, UNMAPPED, DROPPED, None, MOVED, FORKED)
PAGE_WORDS = 1024
AREA = 4 * PAGE_WORDS  # words of one mapping


def _area(program: Program, thread: int, byte: int) -> Buffer | None:
    """Returns mapped host memory, which the program may use again and again."""
    if program.pages and (byte % 4 or len(program.pages) == 3):
        area = program.pick(program.pages, byte // 4)
        program.touch(thread, area)
        return area
    index = program.index("buffer")
    if index is None:
        return None
    area = Buffer(index, MGPU, thread, PAGES, np.zeros(AREA, np.uint32))
    program.say(thread, "pages", area, AREA // PAGE_WORDS, 0)
    program.pages.append(area)
    return area


def _may_fork(program: Program) -> bool:
    """HIP and the kernel decide which pages the device uses if memory is registered at a fork."""
    buffers = [buffer for held in program.held for buffer in held.buffers]
    none = not any(buffer.kind in (MGPU_REGISTERED, REGISTERED) for buffer in buffers)
    return program.threads == 1 and none


@action(4)
def pages(program: Program, thread: int, b: Bytes) -> None:
    """Registers a part of host memory up to three times, copies from it and unregisters it, and
    replaces the pages in between or keeps them. The library may keep the registration, but only as
    long as the pages stay. Other code asks HIP about unregistered memory. A last copy is from
    memory that is no longer registered: HIP reads it at once."""
    target = program.pick([x for x in program.buffers if x.kind == ALLOCATED], b[3])
    area = _area(program, thread, b[0]) if target is not None and thread < THREAD_END else None
    index = program.index("buffer") if area is not None else None
    if index is None:
        return
    offset = (0, 0, 256, PAGE_WORDS, PAGE_WORDS + 512)[b[2] % 5]
    count = (128, PAGE_WORDS, 2 * PAGE_WORDS, AREA)[b[2] // 5 % 4]
    count = min(count, AREA - offset, len(target.content))
    part = Buffer(index, MGPU, thread, PAGES, area.content[offset : offset + count])
    program.say(thread, "name", BUFFERS, part, BUFFERS, area, 4 * offset)
    own = program.pick(program.streams, b[4])
    for number in range(1 + b[1] % 3):
        how = (b[1] // 3 + number) % len(REPLACED)
        if REPLACED[how] is not None and (REPLACED[how] != FORKED or _may_fork(program)):
            program.say(thread, "replace", area, AREA // PAGE_WORDS, REPLACED[how])
        program.say(thread, "register", part, 4 * count)
        _copy_in(program, thread, part, target, own, b[3] + number)
        program.sync(thread, MGPU, own)
        program.say(thread, "unregister", part)
        if b[3] % 2 and not program.is_alone:
            program.pending.discard(os_thread(thread))
            program.ask(None, thread, "attributes", part)
    if b[4] % 4 == 3:
        _copy_in(program, thread, part, target, own, b[3] + 3)
        program.say(thread, "hostset", part, count, 0)


def _copy_in(program: Program, thread: int, part: Buffer, target, own, seed: int) -> None:
    """Writes host memory, and copies it to a block."""
    count = len(part.content)
    program.say(thread, "hostset", part, count, seed)
    program.order(thread, own, seed, target)
    program.submit(own, target, seen=True)
    program.say(thread, "copy", MGPU, target, 0, part, 0, count, own)
    write_words(target, 0, pattern(count, seed))


@action(1)
def crowd(program: Program, thread: int, b: Bytes) -> None:
    """Creates 100 to 10,000 handles that are live at the same time, or destroys the handles of an
    earlier action."""
    kind = b[0] % 3
    if any(one.index == kind for held in program.held for one in held.crowds):
        for one in [one for one in program.crowds if one.index == kind]:
            program.uncrowd(thread, one, b[1] % 2)
        return
    few = kind == STREAMS and "many-streams" in program.without
    streams = [one for one in program.streams[1:] if one.who == MGPU]
    stream = program.pick(streams, b[2])
    if stream is None or (kind == BLOCKS and program.memory):
        return
    if kind == STREAMS and "several-streams" in program.without:
        return
    count = (1000, 100, 300, 10_000)[b[3] % 4] if not few else 100
    made = Crowd(kind, MGPU, thread, stream)
    program.prepare(thread, stream)
    program.ask(f"{count} live", thread, "crowd", kind, count, stream)
    program.submit(stream)
    program.crowds.append(made)


REFUSED = ("block", "module", "function", "stream", "event", "fill", "record")


@action(3)
def refused(program: Program, thread: int, b: Bytes) -> None:
    """Calls the library while a function of HIP fails. If the library returns an object from a
    cache, the program releases the object."""
    kind = b[0] % len(REFUSED)
    if program.threads > 1 or thread >= THREAD_END:
        return
    of = {
        "function": program.modules,
        "fill": [x for x in program.buffers if x.kind == ALLOCATED and x.known],
        "record": program.events,
    }.get(REFUSED[kind], [b[1] % len(images.NAMES)])
    thing = program.pick(of, b[1])
    if thing is None:
        return
    own = program.pick(program.streams, b[2])
    size = 4 * drawn_words(b[3])
    program.prepare(thread, own)
    program.ask(None, thread, "refused", kind, thing, own, size)
    program.submit(own, real=False)
    program.pending.discard(os_thread(thread))


@action(2)
def hoard(program: Program, thread: int, b: Bytes) -> None:
    """On a device with little memory, the foreign user allocates all memory, and the program then
    requests a block."""
    if program.threads == 1 and program.memory and thread < THREAD_END:
        own = program.pick(program.streams, b[2])
        program.prepare(thread, own)
        wanted = 1024 + 4 * drawn_words(b[3])  # more than the 256 bytes that may be left
        program.ask(None, thread, "hoard", own, wanted)
        program.submit(own, real=False)
        program.pending.discard(os_thread(thread))


@action(3)
def held_back(program: Program, thread: int, b: Bytes) -> None:
    """Makes a stream wait for a host function. Until the host function returns, the program avoids
    calls in which stock waits for the stream. On a device with little memory it does not allocate:
    the library then returns idle blocks to HIP, and hipFree waits (docs/how-it-works.md)."""
    streams = [one for one in program.streams[1:] if one.who == MGPU or b[4] % 2]
    stream = program.pick(streams, b[0])
    if stream is None or program.threads > 1 or thread >= THREAD_END:
        return
    hold = program.index("hold")
    if hold is None:
        return
    program.prepare(thread, stream)
    program.say(thread, "hold", stream, hold)
    program.submit(stream)
    for step in range(1 + b[1] % 4):
        choice = b[2] + 37 * step
        own = program.pick(program.streams[1:], choice)
        if choice % 4 == 3:
            event = program.event(thread, MGPU)
            if event is not None:
                program.record(thread, MGPU, event, stream)
                program.events.append(event)
            continue
        if len(program.buffers) < 12 and not program.memory:
            taken = allocate_block(program, thread, drawn_words(b[3] + step), own)
            if taken is not None:
                fill_block(program, thread, taken, own, b[3])
    program.say(thread, "let", hold)
