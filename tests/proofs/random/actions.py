"""The actions of a random program for one device; each action adds some calls (script.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.proofs.programs import images
from tests.proofs.random.model import (
    ALLOCATED,
    EXIT_LATE,
    GLOBAL,
    HIP,
    HIP_NOW,
    MALLOC,
    MANAGED,
    MGPU,
    MGPU_REGISTERED,
    MOST_OBJECTS,
    PINNED,
    REGISTERED,
    Buffer,
    Function,
    Module,
    Program,
    Stream,
    digest,
    join,
    os_thread,
    pattern,
)

ON_HOST = (MANAGED, PINNED, MGPU_REGISTERED, REGISTERED)
KERNELS = ("mix", "slow", "copy", "bump", "where")
#: Calls with wrong arguments, as steps of the player. {0} is a module or a function; {1} is a
#: number of the thread's own, for a page of host memory; object 511 is NULL.
BAD = {
    "image": "place {1} 0 5",
    "name": "lookup {1} {0} 0",
    "grid": "grid {0} 0 1 0 0",
    "block": "grid {0} 1 4096 0 0",
    "size": "malloc 0 {1} 1125899906842624 0 0",
    "free": "pages {1} 1 0; free 0 {1} 0",
    "fill": "pages {1} 1 0; fill 0 {1} 0 4 1 0",
    "unregister": "pages {1} 1 0; unregister {1}",
    "function": "grid 511 1 1 0 0",
    "device": "device 0 99",
    "stream": "unstream 0 511",
    "copy": "pages {1} 1 0; copy 0 511 0 {1} 0 4 0",
}
WORDS = (1, 2, 16, 64, 65, 100, 256, 1000, 1024, 2000, 4096, 4097, 8192, 20_000, 70_000, 150_000)
EXACT_UP_TO = 16 << 10  # words; the library rounds larger blocks up to a class of sizes
MOST_IN_KERNEL = 8192  # words

Bytes = bytes
Action = Callable[[Program, int, Bytes], None]
Actions = list[tuple[int, Action]]  # actions with their weights


def enter_into(actions: Actions) -> Callable[[int], Callable[[Action], Action]]:
    """Returns a decorator that adds an action and its weight to a table."""

    def weighted(weight: int) -> Callable[[Action], Action]:
        def enter(function: Action) -> Action:
            actions.append((weight, function))
            return function

        return enter

    return weighted


ACTIONS: Actions = []
action = enter_into(ACTIONS)


def drawn_words(byte: int) -> int:
    """Returns a number of words: one of WORDS, a size near it, or a size at the boundary between
    exact sizes and classes."""
    base = WORDS[byte % len(WORDS)]
    near = (base, base + 1, max(base - 1, 1), base * 9 // 8, base * 9 // 8 + 1, base * 2 + 1)
    edge = EXACT_UP_TO + byte % 3 - 1
    drawn = (*(base,) * 6, *near[1:], *near[1:], *(edge,) * 2)[byte // len(WORDS) % 16]
    return min(drawn, WORDS[-1])


def _range(buffer: Buffer, byte: int) -> tuple[int, int]:
    """Returns the offset and the count of words whose values are known."""
    offset = (0, 0, 0, 1, buffer.known // 2)[byte % 5] % buffer.known
    left = buffer.known - offset
    return offset, (left, left, (left + 1) // 2)[byte // 5 % 3]


def _target(buffer: Buffer, byte: int) -> tuple[int, int]:
    """Returns the offset and the number of words to write, so that the known words stay
    contiguous."""
    offset = (0, 0, 0, buffer.known // 2, buffer.known)[byte % 5] % len(buffer.content)
    left = len(buffer.content) - offset
    return offset, (left, left, (left + 1) // 2)[byte // 5 % 3]


def write_words(buffer: Buffer, offset: int, words: np.ndarray) -> None:
    buffer.content[offset : offset + len(words)] = words
    buffer.known = max(buffer.known, offset + len(words))


def _host_memory(kind: int) -> bool:
    return kind in ON_HOST


@action(4)
def nothing(program: Program, thread: int, b: Bytes) -> None:
    """Does nothing, so that shrinking has a smallest action."""


@action(10)
def malloc(program: Program, thread: int, b: Bytes) -> None:
    if len(program.buffers) >= 12:
        return
    kinds = (ALLOCATED,) * 8 + (MALLOC, MALLOC, MANAGED, PINNED, MGPU_REGISTERED, REGISTERED)
    if program.is_alone:
        kinds = (ALLOCATED,) * 4 + (MGPU_REGISTERED,) * 3
    kind = kinds[b[0] % len(kinds)]
    count = drawn_words(b[1])
    stream = program.pick(program.streams, b[2]) if kind == ALLOCATED else program.null
    shared = kind == ALLOCATED and stream is program.null and b[3] % 8 == 7
    allocate_block(program, thread, count, stream, kind, shared)


def allocate_block(
    program: Program,
    thread: int,
    count: int,
    stream: Stream,
    kind: int = ALLOCATED,
    shared: bool = False,
) -> Buffer | None:
    held = sum(4 * len(buffer.content) for buffer in program.buffers)
    if program.memory and held + 4 * count > program.memory // 2:
        return None
    index = program.index("buffer")
    if index is None:
        return None
    buffer = Buffer(index, kind, thread, kind, np.zeros(count, np.uint32))
    if kind == ALLOCATED:
        program.prepare(thread, stream)
    program.ask("ok", thread, "malloc", kind, buffer, 4 * count, stream, shared)
    if kind == ALLOCATED and stream is not program.null:
        program.submit(stream, buffer, real=False)
    program.buffers.append(buffer)
    return buffer


@action(7)
def free(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick(program.buffers, b[0])
    if buffer is not None:
        stream = program.pick(program.streams, b[2])
        program.release(thread, buffer, int(b[1] % 4 == 3), b[3], stream)


@action(9)
def upload(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick(program.buffers, b[0])
    if buffer is None:
        return
    who = (MGPU, MGPU, MGPU, HIP, HIP_NOW)[b[1] % 5]
    stream = program.null if who == HIP_NOW else program.pick(program.streams, b[2])
    program.order(thread, stream, b[3], buffer)
    offset, count = _target(buffer, b[4])
    program.submit(stream, buffer, seen=who == MGPU)
    seed = 256 * b[4] + b[3]
    place = b[1] // 5 % 3
    program.say(thread, "up", who, buffer, offset, count, stream, seed, place)
    write_words(buffer, offset, pattern(count, seed))


@action(9)
def download(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick([x for x in program.buffers if x.known], b[0])
    if buffer is None:
        return
    who = (MGPU, MGPU, MGPU, HIP, HIP_NOW)[b[1] % 5]
    stream = program.null if who == HIP_NOW else program.pick(program.streams, b[2])
    offset, count = _range(buffer, b[4])
    program.down(thread, buffer, stream, who, offset, count, b[3], b[1] // 5 % 3)


@action(7)
def copy(program: Program, thread: int, b: Bytes) -> None:
    source = program.pick([x for x in program.buffers if x.known], b[0])
    target = program.pick([x for x in program.buffers if x is not source], b[1])
    if source is None or target is None:
        return
    who = (MGPU, MGPU, MGPU, HIP)[b[2] % 4]
    stream = program.pick(program.streams, b[2] // 4)
    program.order(thread, stream, b[3], target, source)
    from_offset, count = _range(source, b[4])
    to_offset, room = _target(target, b[4] // 16)
    count = min(count, room)
    program.submit(stream, target, source, seen=who == MGPU)
    program.say(thread, "copy", who, target, to_offset, source, from_offset, count, stream)
    write_words(target, to_offset, source.content[from_offset : from_offset + count])


@action(6)
def fill(program: Program, thread: int, b: Bytes) -> None:
    known = (ALLOCATED, MALLOC, MANAGED)  # AMD's HIP 5.2.3 refuses a module's global
    buffer = program.pick([x for x in program.buffers if x.kind in known], b[0])
    if buffer is None:
        return
    who = (0, 4)[b[1] % 2] if program.is_alone else (0, 0, 0, 1, 2, 3, 4)[b[1] % 7]
    stream = program.null if who == 2 else program.pick(program.streams, b[2])
    program.order(thread, stream, b[3], buffer)
    offset, count = _target(buffer, b[4])
    value = {2: b[3], 3: b[3], 4: 256 * b[3] + b[4]}.get(who, 65_536 * b[3] + b[4])
    word = {2: value * 0x01010101, 3: value * 0x01010101, 4: value * 0x10001}.get(who, value)
    program.submit(stream, buffer, seen=who in (0, 4))
    program.say(thread, "fill", who, buffer, offset, count, value, stream)
    write_words(buffer, offset, np.full(count, word, np.uint32))


def fill_block(program: Program, thread: int, buffer: Buffer, stream: Stream, value: int) -> None:
    """Fills a whole block through the library."""
    program.order(thread, stream, value, buffer)
    program.submit(stream, buffer, seen=True)
    program.say(thread, "fill", MGPU, buffer, 0, len(buffer.content), value, stream)
    write_words(buffer, 0, np.full(len(buffer.content), value, np.uint32))


@action(5)
def by_host(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick([x for x in program.buffers if _host_memory(x.kind)], b[0])
    if buffer is None:
        return
    program.settle(thread, b[3], buffer)
    if b[1] % 2 and buffer.known:
        words = buffer.content[: buffer.known]
        program.ask(digest(words), thread, "hostsee", buffer, buffer.known)
        return
    program.say(thread, "hostset", buffer, len(buffer.content), b[2])
    write_words(buffer, 0, pattern(len(buffer.content), b[2]))


@action(5)
def stream(program: Program, thread: int, b: Bytes) -> None:
    index = program.index("stream")
    if len(program.streams) >= 8 or index is None:
        return
    who = (0, 0, 0, 0, 1, 2)[b[0] % 6] if program.any_stream else MGPU
    stream = Stream(index, program.caller(who), thread)
    program.ask("ok", thread, "stream", stream.who, stream)
    program.streams.append(stream)


@action(4)
def unstream(program: Program, thread: int, b: Bytes) -> None:
    stream = program.pick(program.streams[1:], b[0])
    if stream is None or any(crowd.stream is stream for crowd in program.crowds):
        return
    program.leave(thread, stream, b[3])
    program.streams.remove(stream)
    crosses = b[1] % 4 == 3 and "crossed-streams" not in program.without
    program.crosses |= crosses
    program.say(thread, "unstream", int(crosses == (stream.who == MGPU)), stream)


@action(5)
def synchronise(program: Program, thread: int, b: Bytes) -> None:
    stream = program.pick(program.streams, b[0])
    program.sync(thread, (0, 0, 0, 1, 2, 3)[b[1] % 6], stream)


@action(4)
def event(program: Program, thread: int, b: Bytes) -> None:
    if len(program.events) < 6:
        event = program.event(thread, b[0] % 2)
        if event is not None:
            program.events.append(event)


@action(4)
def record(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is not None:
        program.record(thread, b[1] % 2, event, program.pick(program.streams, b[2]))


@action(3)
def wait_event(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is None:
        return
    stream = program.pick(program.streams, b[2])
    program.touch(thread, event)
    program.prepare(thread, stream)
    program.say(thread, "waitevent", b[1] % 2, event, stream)
    join(stream.clock, event.clock)


@action(3)
def synchronise_event(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is None:
        return
    program.touch(thread, event)
    program.say(thread, "eventsync", b[1] % 2, event)
    join(program.clock(thread), event.clock)


@action(3)
def unevent(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is not None:
        program.events.remove(event)
        program.unevent(thread, b[1] % 2, event)


@action(1)
def elapsed(program: Program, thread: int, b: Bytes) -> None:
    """Queries the time between two events of the library. After this query, all events that the
    library creates can measure times."""
    stream = program.pick(program.streams, b[0])
    program.prepare(thread, stream)
    program.ask("a time", thread, "elapsed", b[1] % 2, stream)
    program.submit(stream)
    join(program.clock(thread), stream.clock)


@action(8)
def load(program: Program, thread: int, b: Bytes) -> None:
    index = program.index("module")
    if len(program.modules) >= 8 or index is None:
        return
    number = b[0] % len(images.NAMES)
    name = images.NAMES[number]
    who = program.caller(int(b[1] % 4 == 3))
    cell = None
    if name in images.CELLS:
        cell_index = program.index("buffer")
        if cell_index is None:
            return
        cell = Buffer(cell_index, GLOBAL, thread, GLOBAL, np.zeros(1, np.uint32), 1)
    module = Module(index, who, thread, images.VALUES[name], cell)
    place = 0 if "reused-images" in program.without else b[2] % 4
    program.ask("ok", thread, "load", who, module, number, place)
    program.modules.append(module)


@action(4)
def unload(program: Program, thread: int, b: Bytes) -> None:
    module = program.pick(program.modules, b[0])
    if module is not None:
        # Unloads a module. The foreign user unloads only modules that the foreign user loaded;
        # mgpuModuleUnload unloads any module.
        program.unload(thread, module, MGPU if b[1] % 2 else module.who)


def find_function(
    program: Program, thread: int, module: Module, name: str, b: int
) -> Function | None:
    if name in module.functions and b % 2:
        return module.functions[name]
    index = program.index("function")
    if index is None:
        return None
    program.touch(thread, module)
    function = Function(index, int(b // 2 % 4 == 3), thread, module, name)
    number = KERNELS.index(name)
    program.ask("ok", thread, "function", function.who, function, module, number, b // 8 % 2)
    if name in module.functions:
        program.functions.remove(module.functions[name])
    module.functions[name] = function
    program.functions.append(function)
    return function


@action(16)
def launch(program: Program, thread: int, b: Bytes) -> None:
    module = program.pick(program.modules, b[0])
    reach = (ALLOCATED, MALLOC, MANAGED, PINNED, GLOBAL)
    buffer = program.pick([x for x in program.buffers if x.kind in reach], b[1])
    if module is None or buffer is None:
        return
    kernel = KERNELS[(0, 0, 1, 2, 3)[b[2] % 5]]
    stream = program.pick(program.streams, b[3])
    count, buffers = min(buffer.known, MOST_IN_KERNEL), [buffer]
    argument = b[4]
    if kernel == "bump" and (module.cell is None or buffer is module.cell):
        kernel = "mix"
    if kernel == "copy":
        sources = [x for x in program.buffers if x.kind in reach and x.known and x is not buffer]
        source = program.pick(sources, b[4])
        if source is None:
            return
        count = min(len(buffer.content), source.known, MOST_IN_KERNEL)
        buffers.append(source)
        argument = source.index
    if kernel == "bump":
        count = 1
        buffers.append(module.cell)
    if count == 0:
        return
    function = find_function(program, thread, module, kernel, b[2] // 5)
    if function is not None:
        who = int(b[3] % 5 == 4)
        _launch(program, thread, who, function, stream, buffers, count, argument, b[4])


def _launch(
    program: Program,
    thread: int,
    who: int,
    function: Function,
    stream: Stream,
    buffers: Sequence[Buffer],
    count: int,
    argument: int,
    choice: int,
) -> None:
    """Launches a kernel that writes the first buffer. The kernel `copy` reads the second buffer,
    and the kernel `bump` reads the module's global."""
    buffer, module = buffers[0], function.module
    program.touch(thread, function, module)
    program.order(thread, stream, choice, *buffers)
    program.submit(stream, *buffers, seen=who == MGPU)
    module.used[stream] = stream.count
    number = KERNELS.index(function.kernel)
    program.say(thread, "launch", who, function, number, stream, buffer, count, argument)
    value = np.uint32(module.value)
    if function.kernel in ("mix", "slow"):
        words = buffer.content[:count] * np.uint32(3) + np.uint32(argument) + value
    elif function.kernel == "copy":
        words = buffers[1].content[:count] + value
    else:
        with np.errstate(over="ignore"):
            module.cell.content[0] = module.cell.content[0] * np.uint32(3) + value
        words = module.cell.content
    write_words(buffer, 0, words)


@action(6)
def free_early(program: Program, thread: int, b: Bytes) -> None:
    """Frees a block on a stream of the library while another stream works on the block. The action
    then allocates and overwrites as much memory or less. The library must not reuse the freed block
    while work on the freed block is pending."""
    buffer = program.pick([x for x in program.buffers if x.kind == ALLOCATED and x.known], b[0])
    streams = _library_streams(program, thread, 2 + b[4] % 2) if buffer is not None else []
    if not streams:
        return
    worker = program.pick(streams if b[2] % 4 else program.streams, b[1])
    others = [one for one in streams if one is not worker]
    stream = worker if b[1] % 4 == 3 else program.pick(others, b[1] // 8)
    taker = program.pick(streams, b[2] // 32) if b[4] // 8 % 2 else stream
    order, between = b[4] // 2 % 4, b[4] // 16 % 4
    if order == 3:
        _work(program, thread, buffer, others[-1], b[3], 0)  # the worker's work comes after it
    elif order == 2:
        for one in others:
            program.sync(thread, MGPU, one)
    _work(program, thread, buffer, worker, b[3], b[2])
    program.release(thread, buffer, MGPU, 0, stream)
    if between == 3:
        program.sync(thread, MGPU, program.pick(others[::-1], b[4] // 64))
    count = len(buffer.content)
    near = (count, count, max(count - 1, 1), count // 2 + 1)  # a freed block may serve less
    taken = allocate_block(program, thread, near[b[0] // 64], taker)
    if taken is None:
        return
    fill_block(program, thread, taken, taker, b[3])
    if b[4] // 128:
        program.sync(thread, MGPU, taker)
        program.sync(thread, MGPU, worker)


def _library_streams(program: Program, thread: int, wanted: int) -> list[Stream]:
    """Creates streams of the library until the program has at least `wanted` streams of the
    library. Returns the library's streams, or an empty list if there are fewer than two."""
    for _ in range(wanted):
        streams = [one for one in program.streams[1:] if one.who == MGPU]
        if len(streams) < wanted:
            stream(program, thread, bytes(5))
    streams = [one for one in program.streams[1:] if one.who == MGPU]
    return streams if len(streams) > 1 else []


def _work(
    program: Program, thread: int, buffer: Buffer, stream: Stream, choice: int, value: int
) -> None:
    """Launches a kernel that copies from the buffer, or a slow kernel that writes to the buffer. If
    no kernel is available, fills the buffer instead."""
    module = program.pick(program.modules, choice // 4)
    others = [x for x in program.buffers if x.kind == ALLOCATED and x is not buffer]
    target = program.pick(others, choice // 16) if choice % 4 == 3 else None
    function = None
    if module is not None:
        kernel = "slow" if target is None else "copy"
        function = find_function(program, thread, module, kernel, 1)
    if function is None:
        fill_block(program, thread, buffer, stream, value)
        return
    buffers = [buffer] if target is None else [target, buffer]
    count = min(buffer.known, len(buffers[0].content), MOST_IN_KERNEL)
    argument = value if target is None else buffer.index
    _launch(program, thread, MGPU, function, stream, buffers, count, argument, value)


@action(4)
def learn(program: Program, thread: int, b: Bytes) -> None:
    """Launches a kernel that stores the address of a module's global. Afterwards, actions may use
    the global as a buffer."""
    cells = [m for m in program.modules if m.cell is not None and m.cell not in program.buffers]
    module = program.pick(cells, b[0])
    room = [x for x in program.buffers if x.kind in (ALLOCATED, MALLOC) and len(x.content) > 1]
    buffer = program.pick(room, b[1])
    if module is None or buffer is None:
        return
    function = find_function(program, thread, module, "where", b[2])
    if function is None:
        return
    stream = program.pick(program.streams, b[3])
    program.touch(thread, function, module, module.cell)
    program.order(thread, stream, b[4], buffer)
    program.submit(stream, buffer, seen=True)
    module.used[stream] = stream.count
    program.say(thread, "launch", 0, function, KERNELS.index("where"), stream, buffer, 1, 0)
    program.ask("ok", thread, "learn", module.cell, buffer, b[2] % 2, stream)
    join(program.clock(thread), stream.clock)
    buffer.known = 0
    program.buffers.append(module.cell)


@action(3)
def bad(program: Program, thread: int, b: Bytes) -> None:
    kind = list(BAD)[b[0] % len(BAD)]
    thing = None
    if kind == "name":
        thing = program.pick(program.modules, b[1])
    elif kind in ("grid", "block"):
        thing = program.pick(program.functions, b[1])
    if (thing is None and "{0}" in BAD[kind]) or f"bad-{kind}" in program.without:
        return
    if thing is not None:
        program.touch(thread, thing)
    number = thing.index if thing is not None else 0
    for step in BAD[kind].format(number, MOST_OBJECTS + os_thread(thread)).split("; "):
        name, *arguments = step.split()
        program.ask(None, thread, name, *map(int, arguments))
    if b[2] % 4 == 3:
        program.pending.add(os_thread(thread))
    else:
        program.ask(None, thread, "lasterror", 1)
        program.pending.discard(os_thread(thread))


@action(2)
def last_error(program: Program, thread: int, b: Bytes) -> None:
    program.last_error(thread)


@action(1)
def empty(program: Program, thread: int, b: Bytes) -> None:
    program.say(thread, "empty")


@action(1)
def reset(program: Program, thread: int, b: Bytes) -> None:
    """Resets the current device of the thread. If there are several devices, hipDeviceReset of
    AMD's HIP does not free pinned and managed memory."""
    several = len(program.held) > 1
    if program.threads > 1 or (b[0] % 4 and not several) or thread >= EXIT_LATE:
        return
    program.release_registered(thread, *((MANAGED, PINNED) if several else ()))
    for crowd in list(program.crowds):
        program.uncrowd(thread, crowd, 0)
    program.say(thread, "sync", 3, program.null)
    program.say(thread, "reset")
    program.resets = True
    program.forget()
