"""Random programs: what they call, and what must come out.

A program is a list of actions, seven bytes each. Any list is a valid program: the bytes choose
among what the program holds at that point, and an action that has nothing to work on does nothing.
So a failing program can be cut anywhere, which is how hypothesis makes it small.

What a program does is defined with stock's runtime and HIP. Every access to memory comes after the
last one, in the order of a stream, by an event or by a wait of the host: clocks that count the
operations of each stream say whether it does, and where it would not, a wait of a random kind goes
before it. Of what the library asks of programs beyond that (README), the programs keep two: work on
an allocation comes after it, and mgpuMemFree on a stream after all work. Handles and pointers of
either side go to the other, but never after their end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.random_driver import images

ACTION = 7  # bytes
MOST_OBJECTS = 500  # of a kind in a program; player.h

#: Threads of a program (player.c).
MAIN, THREAD_END, EXIT_LATE, EXIT_EARLY, DESTRUCTOR = 0, 10, 20, 21, 22

#: Who calls, or what allocates (steps.c).
MGPU, HIP, HIP_NOW = 0, 1, 2
ALLOCATED, MALLOC, MANAGED, PINNED, MGPU_REGISTERED, REGISTERED, GLOBAL = range(7)
ON_HOST = (MANAGED, PINNED, MGPU_REGISTERED, REGISTERED)
KERNELS = ("mix", "slow", "copy", "bump", "where")
BAD = ("image", "name", "grid", "block", "size", "free", "fill", "unregister", "function")
BAD += ("device", "stream", "copy")

WORDS = (1, 2, 16, 64, 65, 100, 256, 1000, 1024, 2000, 4096, 4097, 8192, 20_000, 70_000, 150_000)
MOST_IN_KERNEL = 8192  # words

Clock = dict["Stream", int]


def _join(into: Clock, other: Clock) -> None:
    for stream, count in other.items():
        if into.get(stream, 0) < count:
            into[stream] = count


@dataclass(eq=False)
class Object:
    index: int
    who: int  # made by
    thread: int  # that touched it last


@dataclass(eq=False)
class Stream(Object):
    clock: Clock = field(default_factory=dict)  # what its next operation comes after
    count: int = 0  # operations so far

    @property
    def blocking(self) -> bool:
        return self.who != 2


@dataclass(eq=False)
class Buffer(Object):
    kind: int
    content: np.ndarray
    known: int = 0  # words from the start that were written
    last: tuple[Stream, int] | None = None


@dataclass(eq=False)
class Event(Object):
    clock: Clock = field(default_factory=dict)


@dataclass(eq=False)
class Module(Object):
    value: int
    cell: Buffer | None
    used: dict[Stream, int] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


@dataclass(eq=False)
class Function(Object):
    module: Module
    kernel: str


@dataclass
class Script:
    """Lines for the player, and what each has to say; None: as stock's."""

    threads: int
    exits: bool
    lines: list[str]
    expected: dict[int, str | None]
    resets: bool = False
    crosses: bool = False  # one side destroys what the other has made


def os_thread(thread: int) -> int:
    """The thread that plays the lines of one of the script's."""
    return 0 if thread >= EXIT_LATE else thread % THREAD_END


def digest(words: np.ndarray) -> str:
    """As the player says the content of memory."""
    factors = 2 * np.arange(len(words), dtype=np.uint64) + 1
    total = int(np.sum(words.astype(np.uint64) * factors, dtype=np.uint64))
    return f"{words[0]} {total:x}"


def pattern(count: int, seed: int) -> np.ndarray:
    return (seed + 7 * np.arange(count, dtype=np.uint64)).astype(np.uint32)


class Program:
    """A program as it grows: its lines, its objects, and their values on a model of the device."""

    def __init__(
        self,
        head: bytes,
        actions: Sequence[bytes],
        *,
        exits: bool = False,
        null_order: bool = False,
        memory: int = 0,
        without: Sequence[str] = (),
    ) -> None:
        head = head.ljust(4, b"\0")
        self.threads = (1, 1, 2, 4)[head[0] % 4]
        # Whether the null stream's order with others is relied on: AMD's 5.2.3 does not always keep
        # it, and with several threads nothing says which of two submissions came first.
        self.null_order = null_order and self.threads == 1
        self.exits, self.head = exits, head
        self.memory = memory  # bytes that the device has, which must do; 0: enough
        self.lines: list[str] = []
        self.expected: dict[int, str | None] = {}
        self.marks = 0
        self.host: dict[int, Clock] = {}
        self.ended = False
        self.resets = self.crosses = False
        self.pending: set[int] = set()  # threads with an error to be read
        self.made: dict[str, int] = {}
        self._forget()
        if exits:  # a program that first calls HIP at its end is not asked about
            stream(self, MAIN, bytes(ACTION))
        self.without = without  # actions by their names, or kinds of failure: bad-image
        table = [nothing if f.__name__ in without else f for f in TABLE]
        for i, action in enumerate(actions):
            action = bytes(action).ljust(ACTION, b"\0")
            self.ended = head[1] % 4 == 1 and 4 * i > 3 * len(actions)
            thread = self._thread(action[1], i / max(len(actions), 1))
            table[action[0] % len(table)](self, thread, action[2:])
        self._finish(self._thread(0, 1))

    def script(self) -> Script:
        return Script(
            self.threads, self.exits, self.lines, self.expected, self.resets, self.crosses
        )

    def _thread(self, byte: int, passed: float) -> int:
        if self.exits and passed > 0.55:
            if passed < 0.7:
                return EXIT_LATE
            return EXIT_EARLY if passed < 0.85 else DESTRUCTOR
        thread = byte % self.threads
        return THREAD_END + thread if self.ended and thread else thread

    def _forget(self) -> None:
        """As at the start, and after a reset of the device."""
        self.null = Stream(0, MGPU, 0)
        self.streams: list[Stream] = [self.null]
        self.buffers: list[Buffer] = []
        self.events: list[Event] = []
        self.modules: list[Module] = []
        self.functions: list[Function] = []

    # ---- lines ----

    def say(self, thread: int, name: str, *arguments: int | Object) -> int:
        words = [a.index if isinstance(a, Object) else int(a) for a in arguments]
        self.lines.append(" ".join(map(str, (thread, name, *words))))
        return len(self.lines)

    def ask(self, expected: str | None, thread: int, name: str, *arguments: int | Object) -> None:
        self.expected[self.say(thread, name, *arguments)] = expected

    def index(self, kind: str) -> int | None:
        """A number for a new object, from 1: the null stream has 0."""
        number = self.made.get(kind, 0) + 1
        if number >= MOST_OBJECTS:
            return None
        self.made[kind] = number
        return number

    # ---- order on the host ----

    def touch(self, thread: int, *objects: Object) -> None:
        """Lets a thread's next line come after what other threads did with the objects."""
        for thing in objects:
            if thing.thread == thread:
                continue
            if thread < EXIT_LATE and os_thread(thing.thread) != os_thread(thread):
                self.marks += 1
                self.say(thing.thread, "post", self.marks)
                self.say(thread, "await", self.marks)
            _join(self.clock(thread), self.clock(thing.thread))
            thing.thread = thread

    def clock(self, thread: int) -> Clock:
        return self.host.setdefault(thread, {})

    # ---- order on the device ----

    def prepare(self, thread: int, stream: Stream) -> None:
        """Lets a stream's next operation come after all that the host knows to be done."""
        self.touch(thread, stream)
        _join(stream.clock, self.clock(thread))

    def _implied(self, stream: Stream) -> Clock:
        """What an operation on a stream comes after by the order of the null stream."""
        clock: Clock = {}
        if self.null_order and stream is self.null:
            for other in self.streams:
                if other.blocking:
                    _join(clock, other.clock)
        elif self.null_order and stream.blocking:
            _join(clock, self.null.clock)
        return clock

    def order(self, thread: int, stream: Stream, choice: int, *buffers: Buffer) -> None:
        """Lets the stream's next operation come after the last on each buffer."""
        self.touch(thread, stream, *buffers)
        self.prepare(thread, stream)
        for buffer in buffers:
            if buffer.last is None:
                continue
            last, number = buffer.last
            known = max(stream.clock.get(last, 0), self._implied(stream).get(last, 0))
            if known < number and last is not stream:
                self._wait(thread, last, stream, choice)
                _join(stream.clock, self.clock(thread))

    def _wait(self, thread: int, last: Stream, stream: Stream | None, choice: int) -> None:
        """A wait for all of a stream, by another stream or (None, or by choice) by the host."""
        if stream is None or choice % 8 >= 4:
            self._host_wait(thread, last, choice)
            return
        who, other = choice & 1, choice >> 1 & 1
        event = self._event(thread, who)
        if event is None:
            self._host_wait(thread, last, choice)
            return
        self._record(thread, other, event, last)
        self.say(thread, "waitevent", who, event, stream)
        _join(stream.clock, event.clock)
        self._unevent(thread, other, event)

    def _host_wait(self, thread: int, last: Stream, choice: int) -> None:
        self.touch(thread, last)
        how = choice // 8 % 5
        event = self._event(thread, choice & 1) if how == 4 else None
        if event is None:
            self.say(thread, "sync", how % 4, last)
        else:
            self._record(thread, choice & 1, event, last)
            self.say(thread, "eventsync", choice >> 1 & 1, event)
            self._unevent(thread, choice & 1, event)
        _join(self.clock(thread), last.clock)

    def submit(self, thread: int, stream: Stream, *buffers: Buffer, real: bool = True) -> None:
        """After order(): the operation itself; not real: stock submits nothing there."""
        if real:
            _join(stream.clock, self._implied(stream))
        stream.count += 1
        stream.clock[stream] = stream.count
        for buffer in buffers:
            buffer.last = (stream, stream.count)

    def settle(self, thread: int, choice: int, buffer: Buffer) -> None:
        """Lets the host see the buffer's content."""
        self.touch(thread, buffer)
        if buffer.last is None:
            return
        last, number = buffer.last
        if self.clock(thread).get(last, 0) < number:
            self._host_wait(thread, last, choice)

    # ---- objects ----

    def pick(self, objects: Sequence, byte: int):
        return objects[byte % len(objects)] if objects else None

    def _event(self, thread: int, who: int) -> Event | None:
        index = self.index("event")
        if index is None:
            return None
        event = Event(index, who, thread)
        self.ask("ok", thread, "event", who, event)
        return event

    def _record(self, thread: int, who: int, event: Event, stream: Stream) -> None:
        self.touch(thread, event)
        self.prepare(thread, stream)
        self.say(thread, "record", who, event, stream)
        self.submit(thread, stream)
        event.clock = dict(stream.clock)

    def _unevent(self, thread: int, who: int, event: Event) -> None:
        self.touch(thread, event)
        self.crosses |= who != event.who
        self.say(thread, "unevent", who, event)

    def _release(self, thread: int, buffer: Buffer, who: int, choice: int, stream: Stream) -> None:
        """Frees a buffer; mgpuMemFree on a stream in its order, else waiting for all."""
        if buffer.kind == GLOBAL:
            return
        self.touch(thread, buffer)
        if buffer.kind in (ALLOCATED, MALLOC, MANAGED):
            if who == MGPU and stream is not self.null:
                self.order(thread, stream, choice, buffer)
                self.submit(thread, stream, real=False)
            elif who == MGPU:
                self.touch(thread, stream)
            who = MGPU if who == MGPU else HIP
            self.crosses |= (who == MGPU) != (buffer.kind == ALLOCATED)
            self.say(thread, "free", who, buffer, stream)
        else:
            self.settle(thread, choice, buffer)
            self.say(thread, "free", buffer.kind, buffer, 0)
        self.buffers.remove(buffer)

    def _unload(self, thread: int, module: Module, who: int) -> None:
        """Once the work is done that uses it: HIP does not wait."""
        for function in module.functions.values():
            self.touch(thread, function)
            self.functions.remove(function)
        self.touch(thread, module)
        clock = self.clock(thread)
        for stream, number in module.used.items():
            if clock.get(stream, 0) < number:
                self._host_wait(thread, stream, 0)
        if module.cell is not None:
            self.touch(thread, module.cell)
            if module.cell.last is not None:
                self.settle(thread, 0, module.cell)
            if module.cell in self.buffers:
                self.buffers.remove(module.cell)
        self.crosses |= who != module.who
        self.say(thread, "unload", who, module)
        self.modules.remove(module)

    def _leave(self, thread: int, stream: Stream, choice: int) -> None:
        """Lets everything that a stream was used for be known done elsewhere: it is to go."""
        self.touch(thread, stream)
        mine = [b for b in (*self.buffers, *self._cells()) if b.last and b.last[0] is stream]
        used = [m for m in self.modules if stream in m.used]
        if mine or used:
            self.touch(thread, *mine, *used)
            others = [other for other in self.streams if other is not stream]
            other = self.pick(others, choice >> 3)
            if choice % 2 or used or other is None:
                self._host_wait(thread, stream, choice >> 1)
                for buffer in mine:
                    buffer.last = None
                for module in used:
                    del module.used[stream]
            else:
                self.prepare(thread, other)
                self._wait(thread, stream, other, choice & 3)
                self.submit(thread, other, *mine, real=False)

    def _cells(self) -> list[Buffer]:
        return [m.cell for m in self.modules if m.cell is not None and m.cell not in self.buffers]

    # ---- the end ----

    def _finish(self, thread: int) -> None:
        """Reads everything once more and gives it back, or (rarely) leaves it."""
        for buffer in list(self.buffers):
            if buffer.known:
                self.down(thread, buffer, self.null, MGPU, 0, buffer.known, 0, 0)
        self.last_error(thread)
        if self.head[2] % 8 == 7 and not self.memory:
            self.ask(None, thread, "misuse")
            return
        for event in self.events:
            self._unevent(thread, event.who, event)
        for buffer in list(self.buffers):
            self._release(thread, buffer, MGPU, 2, self.streams[-1])
        for module in list(self.modules):
            self._unload(thread, module, module.who)
        for stream in self.streams[1:]:
            self.touch(thread, stream)
            self.say(thread, "unstream", stream.who if stream.who != 2 else HIP, stream)
        self.ask(None, thread, "misuse")

    # ---- what several actions share ----

    def last_error(self, thread: int) -> None:
        """Nothing has failed since it was read, or it is read now."""
        own = os_thread(thread)
        if own in self.pending:
            self.say(thread, "lasterror", 0)
            self.pending.discard(own)
        else:
            self.ask("last error 0", thread, "lasterror", 1)

    def down(self, thread, buffer, stream, who, offset, count, choice, place) -> None:
        self.order(thread, stream, choice, buffer)
        text = digest(buffer.content[offset : offset + count])
        self.submit(thread, stream, buffer)
        self.ask(text, thread, "down", who, buffer, offset, count, stream, place)
        _join(self.clock(thread), stream.clock)


# ---- actions ----

Bytes = bytes
_ACTIONS: list[tuple[int, Callable[[Program, int, Bytes], None]]] = []


def _action(weight: int):
    def register(function):
        _ACTIONS.append((weight, function))
        return function

    return register


def _range(buffer: Buffer, byte: int) -> tuple[int, int]:
    """Words of what is known: offset and count."""
    offset = (0, 0, 0, 1, buffer.known // 2)[byte % 5] % buffer.known
    left = buffer.known - offset
    return offset, (left, left, (left + 1) // 2)[byte // 5 % 3]


def _target(buffer: Buffer, byte: int) -> tuple[int, int]:
    """Words to write, so that what is known stays without holes: offset and count."""
    offset = (0, 0, 0, buffer.known // 2, buffer.known)[byte % 5] % len(buffer.content)
    left = len(buffer.content) - offset
    return offset, (left, left, (left + 1) // 2)[byte // 5 % 3]


def _write(buffer: Buffer, offset: int, words: np.ndarray) -> None:
    buffer.content[offset : offset + len(words)] = words
    buffer.known = max(buffer.known, offset + len(words))


def _host_memory(kind: int) -> bool:
    return kind in ON_HOST


@_action(4)
def nothing(program: Program, thread: int, b: Bytes) -> None:
    """The smallest action."""


@_action(10)
def malloc(program: Program, thread: int, b: Bytes) -> None:
    if len(program.buffers) >= 12:
        return
    index = program.index("buffer")
    if index is None:
        return
    kinds = (ALLOCATED,) * 8 + (MALLOC, MALLOC, MANAGED, PINNED, MGPU_REGISTERED, REGISTERED)
    kind = kinds[b[0] % len(kinds)]
    count = WORDS[b[1] % len(WORDS)]
    held = sum(4 * len(buffer.content) for buffer in program.buffers)
    if program.memory and held + 4 * count > program.memory // 2:
        return
    stream = program.pick(program.streams, b[2])
    shared = kind == ALLOCATED and stream is program.null and b[3] % 8 == 7
    buffer = Buffer(index, kind, thread, kind, np.zeros(count, np.uint32))
    if kind == ALLOCATED:
        program.prepare(thread, stream)
    else:
        stream = program.null
    program.ask("ok", thread, "malloc", kind, buffer, 4 * count, stream, shared)
    if kind == ALLOCATED and stream is not program.null:
        program.submit(thread, stream, buffer, real=False)
    program.buffers.append(buffer)


@_action(7)
def free(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick(program.buffers, b[0])
    if buffer is not None:
        stream = program.pick(program.streams, b[2])
        program._release(thread, buffer, int(b[1] % 4 == 3), b[3], stream)


@_action(9)
def upload(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick(program.buffers, b[0])
    if buffer is None:
        return
    who = (MGPU, MGPU, MGPU, HIP, HIP_NOW)[b[1] % 5]
    stream = program.null if who == HIP_NOW else program.pick(program.streams, b[2])
    program.order(thread, stream, b[3], buffer)
    offset, count = _target(buffer, b[4])
    program.submit(thread, stream, buffer)
    seed = 256 * b[4] + b[3]
    place = b[1] // 5 % 3
    program.say(thread, "up", who, buffer, offset, count, stream, seed, place)
    _write(buffer, offset, pattern(count, seed))


@_action(9)
def download(program: Program, thread: int, b: Bytes) -> None:
    buffer = program.pick([x for x in program.buffers if x.known], b[0])
    if buffer is None:
        return
    who = (MGPU, MGPU, MGPU, HIP, HIP_NOW)[b[1] % 5]
    stream = program.null if who == HIP_NOW else program.pick(program.streams, b[2])
    offset, count = _range(buffer, b[4])
    program.down(thread, buffer, stream, who, offset, count, b[3], b[1] // 5 % 3)


@_action(7)
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
    program.submit(thread, stream, target, source)
    program.say(thread, "copy", who, target, to_offset, source, from_offset, count, stream)
    _write(target, to_offset, source.content[from_offset : from_offset + count])


@_action(6)
def fill(program: Program, thread: int, b: Bytes) -> None:
    known = (ALLOCATED, MALLOC, MANAGED)  # AMD's 5.2.3 does not know a module's global
    buffer = program.pick([x for x in program.buffers if x.kind in known], b[0])
    if buffer is None:
        return
    who = (0, 0, 0, 1, 2, 3, 4)[b[1] % 7]
    stream = program.null if who == 2 else program.pick(program.streams, b[2])
    program.order(thread, stream, b[3], buffer)
    offset, count = _target(buffer, b[4])
    value = {2: b[3], 3: b[3], 4: 256 * b[3] + b[4]}.get(who, 65_536 * b[3] + b[4])
    word = {2: value * 0x01010101, 3: value * 0x01010101, 4: value * 0x10001}.get(who, value)
    program.submit(thread, stream, buffer)
    program.say(thread, "fill", who, buffer, offset, count, value, stream)
    _write(buffer, offset, np.full(count, word, np.uint32))


@_action(5)
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
    _write(buffer, 0, pattern(len(buffer.content), b[2]))


@_action(5)
def stream(program: Program, thread: int, b: Bytes) -> None:
    index = program.index("stream")
    if len(program.streams) >= 8 or index is None:
        return
    stream = Stream(index, (0, 0, 0, 0, 1, 2)[b[0] % 6], thread)
    program.ask("ok", thread, "stream", stream.who, stream)
    program.streams.append(stream)


@_action(4)
def unstream(program: Program, thread: int, b: Bytes) -> None:
    stream = program.pick(program.streams[1:], b[0])
    if stream is None:
        return
    program._leave(thread, stream, b[3])
    program.streams.remove(stream)
    crosses = b[1] % 4 == 3
    program.crosses |= crosses
    program.say(thread, "unstream", int(crosses == (stream.who == MGPU)), stream)


@_action(5)
def synchronise(program: Program, thread: int, b: Bytes) -> None:
    stream = program.pick(program.streams, b[0])
    program.touch(thread, stream)
    program.say(thread, "sync", (0, 0, 0, 1, 2, 3)[b[1] % 6], stream)
    _join(program.clock(thread), stream.clock)


@_action(4)
def event(program: Program, thread: int, b: Bytes) -> None:
    if len(program.events) < 6:
        event = program._event(thread, b[0] % 2)
        if event is not None:
            program.events.append(event)


@_action(4)
def record(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is not None:
        program._record(thread, b[1] % 2, event, program.pick(program.streams, b[2]))


@_action(3)
def wait_event(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is None:
        return
    stream = program.pick(program.streams, b[2])
    program.touch(thread, event)
    program.prepare(thread, stream)
    program.say(thread, "waitevent", b[1] % 2, event, stream)
    _join(stream.clock, event.clock)


@_action(3)
def synchronise_event(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is None:
        return
    program.touch(thread, event)
    program.say(thread, "eventsync", b[1] % 2, event)
    _join(program.clock(thread), event.clock)


@_action(3)
def unevent(program: Program, thread: int, b: Bytes) -> None:
    event = program.pick(program.events, b[0])
    if event is not None:
        program.events.remove(event)
        program._unevent(thread, b[1] % 2, event)


@_action(8)
def load(program: Program, thread: int, b: Bytes) -> None:
    index = program.index("module")
    if len(program.modules) >= 8 or index is None:
        return
    number = b[0] % len(images.NAMES)
    name = images.NAMES[number]
    who = int(b[1] % 4 == 3)
    cell = None
    if name in images.CELLS:
        cell_index = program.index("buffer")
        if cell_index is None:
            return
        cell = Buffer(cell_index, GLOBAL, thread, GLOBAL, np.zeros(1, np.uint32), 1)
    module = Module(index, who, thread, images.VALUES[name], cell)
    program.ask("ok", thread, "load", who, module, number, b[2] % 4)
    program.modules.append(module)


@_action(4)
def unload(program: Program, thread: int, b: Bytes) -> None:
    module = program.pick(program.modules, b[0])
    if module is not None:
        # What the foreign user unloads is its own: mgpuModuleUnload takes either's.
        program._unload(thread, module, MGPU if b[1] % 2 else module.who)


def _function(program: Program, thread: int, module: Module, name: str, b: int) -> Function | None:
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


@_action(16)
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
    function = _function(program, thread, module, kernel, b[2] // 5)
    if function is None:
        return
    program.touch(thread, function, module)
    program.order(thread, stream, b[4], *buffers)
    program.submit(thread, stream, *buffers)
    module.used[stream] = stream.count
    number, who = KERNELS.index(kernel), int(b[3] % 5 == 4)
    program.say(thread, "launch", who, function, number, stream, buffer, count, argument)
    value = np.uint32(module.value)
    if kernel in ("mix", "slow"):
        words = buffer.content[:count] * np.uint32(3) + np.uint32(argument) + value
    elif kernel == "copy":
        words = buffers[1].content[:count] + value
    else:
        with np.errstate(over="ignore"):
            module.cell.content[0] = module.cell.content[0] * np.uint32(3) + value
        words = module.cell.content
    _write(buffer, 0, words)


@_action(4)
def learn(program: Program, thread: int, b: Bytes) -> None:
    """A kernel stores the address of a module's global; from then on the program uses it."""
    cells = [m for m in program.modules if m.cell is not None and m.cell not in program.buffers]
    module = program.pick(cells, b[0])
    room = [x for x in program.buffers if x.kind in (ALLOCATED, MALLOC) and len(x.content) > 1]
    buffer = program.pick(room, b[1])
    if module is None or buffer is None:
        return
    function = _function(program, thread, module, "where", b[2])
    if function is None:
        return
    stream = program.pick(program.streams, b[3])
    program.touch(thread, function, module, module.cell)
    program.order(thread, stream, b[4], buffer)
    program.submit(thread, stream, buffer)
    module.used[stream] = stream.count
    program.say(thread, "launch", 0, function, KERNELS.index("where"), stream, buffer, 1, 0)
    program.ask("ok", thread, "learn", module.cell, buffer, b[2] % 2, stream)
    _join(program.clock(thread), stream.clock)
    buffer.known = 0
    program.buffers.append(module.cell)


@_action(3)
def bad(program: Program, thread: int, b: Bytes) -> None:
    kind = BAD[b[0] % len(BAD)]
    thing = 0
    if kind == "name":
        thing = program.pick(program.modules, b[1])
    elif kind in ("grid", "block"):
        thing = program.pick(program.functions, b[1])
    if thing is None or f"bad-{kind}" in program.without:
        return
    if isinstance(thing, Object):
        program.touch(thread, thing)
    program.ask(None, thread, "bad", BAD.index(kind), thing)
    if b[2] % 4 == 3:
        program.pending.add(os_thread(thread))
    else:
        program.ask(None, thread, "lasterror", 1)
        program.pending.discard(os_thread(thread))


@_action(2)
def last_error(program: Program, thread: int, b: Bytes) -> None:
    program.last_error(thread)


@_action(1)
def empty(program: Program, thread: int, b: Bytes) -> None:
    program.say(thread, "empty")


@_action(1)
def reset(program: Program, thread: int, b: Bytes) -> None:
    if program.threads > 1 or b[0] % 4 or thread >= EXIT_LATE:
        return
    for buffer in list(program.buffers):
        if buffer.kind in (MGPU_REGISTERED, REGISTERED):
            program._release(thread, buffer, MGPU, 0, program.null)
    program.say(thread, "sync", 3, program.null)
    program.say(thread, "reset")
    program.resets = True
    program._forget()


TABLE = [function for weight, function in _ACTIONS for _ in range(weight)]
