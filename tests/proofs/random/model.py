"""A model of the device: the objects of a random program, and the expected output of each script
line.

HIP and stock both define the result of every call in a program. A stream, an event or a wait of the
host orders each access to memory after the previous access. Clocks that count the operations of
each stream detect whether two accesses are ordered. If two accesses are not ordered, the model
inserts a wait of a random kind. The library requires more of programs than HIP does
(docs/stock.md), so random programs follow two rules. Work on a block begins only after the program
has allocated the block. On a stream, mgpuMemFree follows all work that the program submitted
through HIP. Work that the program submitted through the library may still be pending. Programs pass
handles and pointers between the library and the foreign user, but never use destroyed handles or
freed pointers.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

MOST_OBJECTS = 500  # objects of one kind in a program; player.h

#: In some kinds of script lines, one argument selects the caller (MGPU or HIP). For each such kind,
#: the table contains the position of the argument that selects the caller (steps.c).
CALLER = {
    **dict.fromkeys(("up", "down", "copy", "sync", "stream", "unstream", "device"), 0),
    **dict.fromkeys(("event", "record", "waitevent", "eventsync", "unevent", "uncrowd"), 0),
    **dict.fromkeys(("load", "unload", "function", "launch"), 0),
    "learn": 2,
}

#: the numbers of a program's threads (player.c)
MAIN, THREAD_END, EXIT_LATE, EXIT_EARLY, DESTRUCTOR = 0, 10, 20, 21, 22

#: the numbers of the callers and of the allocators (steps.c)
MGPU, HIP, HIP_NOW = 0, 1, 2
ALLOCATED, MALLOC, MANAGED, PINNED, MGPU_REGISTERED, REGISTERED, GLOBAL, PAGES = range(8)
ASKS = 2  # a wait that queries until the stream is idle

#: Kinds of objects of which thousands may be live at once. BUSY_WITH_ALL selects all kinds of work
#: that threads do while the process exits (edges.c).
EVENTS, STREAMS, BLOCKS = range(3)
BUSY_WITH_ALL = 63


class Ending(enum.Enum):
    """The ways in which a process ends. Exit handlers make calls, threads make calls while the
    process exits, or a host function blocks a stream."""

    HANDLERS = "handlers"
    BUSY = "busy"
    BUSY_HANDLERS = "busy-handlers"
    HELD = "held"

    @property
    def word(self) -> str:
        """Returns the name of this ending in a list of excluded actions (`without`)."""
        return f"end-{self.value}"

    @property
    def has_handlers(self) -> bool:
        return self in (Ending.HANDLERS, Ending.BUSY_HANDLERS)


Clock = dict["Stream", int]


def join(into: Clock, other: Clock) -> None:
    for stream, count in other.items():
        if into.get(stream, 0) < count:
            into[stream] = count


@dataclass(eq=False)
class Object:
    index: int
    who: int  # the caller that made the object
    thread: int  # the thread that touched the buffer last


@dataclass(eq=False)
class Stream(Object):
    clock: Clock = field(default_factory=dict)  # the operations that precede the next operation
    count: int = 0  # operations so far

    @property
    def blocking(self) -> bool:
        return self.who != 2


@dataclass(eq=False)
class Buffer(Object):
    kind: int
    content: np.ndarray
    known: int = 0  # number of written words, from the start
    last: tuple[Stream, int] | None = None
    seen: bool = False  # the last operation went through the mgpu functions


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


@dataclass(eq=False)
class Crowd(Object):
    """Thousands of handles of one kind that are live at once. `index` is the number of this kind of
    handle."""

    stream: Stream  # the stream that uses the handles


@dataclass(eq=False)
class Held:
    """The objects of a program on one device."""

    null: Stream = field(default_factory=lambda: Stream(0, MGPU, 0))
    streams: list[Stream] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    crowds: list[Crowd] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.streams.append(self.null)


@dataclass
class Script:
    """The lines for the player, and the expected output of each line. None means that the output
    must equal stock's."""

    threads: int
    exits: bool
    lines: list[str]
    expected: dict[int, str | None]
    resets: bool = False
    crosses: bool = False  # one side destroys objects that the other has made


def os_thread(thread: int) -> int:
    """Returns the number of the OS thread that executes the lines of a script's thread."""
    return 0 if thread >= EXIT_LATE else thread % THREAD_END


def digest(words: np.ndarray) -> str:
    """Returns the text that the player prints for the content of memory."""
    factors = 2 * np.arange(len(words), dtype=np.uint64) + 1
    total = int(np.sum(words.astype(np.uint64) * factors, dtype=np.uint64))
    return f"{words[0]} {total:x}"


def pattern(count: int, seed: int) -> np.ndarray:
    return (seed + 7 * np.arange(count, dtype=np.uint64)).astype(np.uint32)


class Program:
    """A program under construction: the program's lines, and the program's objects with their
    values in the model."""

    def __init__(
        self,
        head: bytes,
        *,
        exits: bool = False,
        null_order: bool = False,
        memory: int = 0,
        devices: int = 1,
        without: Sequence[str] = (),
    ) -> None:
        head = head.ljust(4, b"\0")
        self.threads = (1, 1, 2, 4)[head[0] % 4]
        # Only a program with one thread may rely on the order between the null stream and other
        # streams. AMD's HIP 5.2.3 sometimes violates the order of the null stream. With several
        # threads, the order of two submissions is unknown.
        self.null_order = null_order and self.threads == 1
        self.exits, self.head = exits, head
        # One half of all programs use only streams of the library. The library does not pool blocks
        # that are freed while other streams are busy.
        self.any_stream = head[0] & 4 != 0
        self.is_alone = "foreign" in without  # no other code in the process calls HIP so far
        self.memory = memory  # the device's bytes, which must suffice; 0: enough
        self.lines: list[str] = []
        self.expected: dict[int, str | None] = {}
        self.marks = 0
        self.pages: list[Buffer] = []  # host memory that the program maps
        self.host: dict[int, Clock] = {}
        self.ended = False
        self.resets = self.crosses = False
        self.pending: set[int] = set()  # threads with an unread error
        self.made: dict[str, int] = {}
        self.without = without  # actions by name, or kinds of failure: bad-image
        self.ending = self._ending() if exits else Ending.HANDLERS
        self.held = [Held() for _ in range(devices)]
        self.device_of: dict[int, int] = {}  # the devices that threads have stated
        self._look_at(0)

    def script(self) -> Script:
        crosses = self.crosses and not self.is_alone
        return Script(self.threads, self.exits, self.lines, self.expected, self.resets, crosses)

    def meet_foreign(self) -> None:
        """Lets other code call HIP from the next line on."""
        self.is_alone = self.crosses = False

    def caller(self, who: int) -> int:
        return MGPU if self.is_alone else who

    def thread(self, byte: int, passed: float) -> int:
        if self.exits and passed > 0.55 and self.ending.has_handlers:
            if passed < 0.7:
                return EXIT_LATE
            return EXIT_EARLY if passed < 0.85 else DESTRUCTOR
        thread = byte % self.threads
        return THREAD_END + thread if self.ended and thread else thread

    # ---- devices ----

    def _look_at(self, device: int) -> None:
        """Selects a device; the following actions use the objects of this device."""
        self.device, held = device, self.held[device]
        self.null, self.streams, self.buffers = held.null, held.streams, held.buffers
        self.events, self.modules, self.functions = held.events, held.modules, held.functions
        self.crowds = held.crowds

    def enter(self, thread: int, device: int | None = None, who: int = MGPU) -> None:
        """Sets the current device of a thread. Without `device`, the thread keeps its current
        device, which is 0 at first. If there are several devices, each thread of the script selects
        device 0 explicitly."""
        have = self.device_of.get(thread)
        device = have or 0 if device is None else device
        if have != device and len(self.held) > 1:
            self.say(thread, "device", who, device)
            self.device_of[thread] = device
        self._look_at(device)

    def forget(self) -> None:
        """Discards the device's objects after a reset."""
        self.held[self.device] = Held()
        self._look_at(self.device)

    def others(self) -> list[int]:
        return [device for device in range(len(self.held)) if device != self.device]

    # ---- lines ----

    def say(self, thread: int, name: str, *arguments: int | Object) -> int:
        words = [a.index if isinstance(a, Object) else int(a) for a in arguments]
        if self.is_alone and name in CALLER:
            words[CALLER[name]] = MGPU
        self.lines.append(" ".join(map(str, (thread, name, *words))))
        return len(self.lines)

    def ask(self, expected: str | None, thread: int, name: str, *arguments: int | Object) -> None:
        self.expected[self.say(thread, name, *arguments)] = expected

    def index(self, kind: str) -> int | None:
        """Returns a number for a new object, or None if no number is left. Numbers begin at 1,
        because the null stream has number 0."""
        number = self.made.get(kind, 0) + 1
        if number >= MOST_OBJECTS:
            return None
        self.made[kind] = number
        return number

    # ---- order on the host ----

    def touch(self, thread: int, *objects: Object) -> None:
        """Ensures that all earlier uses of the objects in other threads end before the thread's
        next line runs."""
        for thing in objects:
            if thing.thread == thread:
                continue
            if thread < EXIT_LATE and os_thread(thing.thread) != os_thread(thread):
                self._await(thread, thing.thread)
            join(self.clock(thread), self.clock(thing.thread))
            thing.thread = thread

    def _await_all(self, thread: int) -> None:
        """Orders a thread's next line after all lines of other threads."""
        if thread >= EXIT_LATE:  # these threads have ended
            return
        for other in sorted({int(line.split()[0]) for line in self.lines}):
            if os_thread(other) != os_thread(thread):
                self._await(thread, other)

    def _await(self, thread: int, other: int) -> None:
        mark = self.mark()
        self.say(other, "post", mark)
        self.say(thread, "await", mark)

    def mark(self) -> int:
        self.marks += 1
        return self.marks

    def clock(self, thread: int) -> Clock:
        return self.host.setdefault(thread, {})

    # ---- order on the device ----

    def prepare(self, thread: int, stream: Stream) -> None:
        """Orders a stream's next operation after all operations that the thread has waited for."""
        self.touch(thread, stream)
        join(stream.clock, self.clock(thread))

    def _implied(self, stream: Stream) -> Clock:
        """Returns the operations that, by the order of the null stream, precede a new operation."""
        clock: Clock = {}
        if self.null_order and stream is self.null:
            for other in self.streams:
                if other.blocking:
                    join(clock, other.clock)
        elif self.null_order and stream.blocking:
            join(clock, self.null.clock)
        return clock

    def order(self, thread: int, stream: Stream, choice: int, *buffers: Buffer) -> None:
        """Orders the stream's next operation after the last operation on each buffer."""
        self.touch(thread, stream, *buffers)
        self.prepare(thread, stream)
        for buffer in buffers:
            if buffer.last is None:
                continue
            last, number = buffer.last
            known = max(stream.clock.get(last, 0), self._implied(stream).get(last, 0))
            if known < number and last is not stream:
                self._wait(thread, last, stream, choice)
                join(stream.clock, self.clock(thread))

    def _wait(self, thread: int, last: Stream, stream: Stream | None, choice: int) -> None:
        """Makes `stream` or the host wait for all work of the stream `last`; `choice` selects the
        kind of wait. If `stream` is None, the host waits."""
        if stream is None or choice % 8 >= 4:
            self._host_wait(thread, last, choice)
            return
        who, other = choice & 1, choice >> 1 & 1
        event = self.event(thread, who)
        if event is None:
            self._host_wait(thread, last, choice)
            return
        self.record(thread, other, event, last)
        self.say(thread, "waitevent", who, event, stream)
        join(stream.clock, event.clock)
        self.unevent(thread, other, event)

    def sync(self, thread: int, how: int, stream: Stream) -> None:
        """Makes the host wait for a stream; `how` selects one of the waits in steps.c."""
        self.touch(thread, stream)
        if how == ASKS and "asks" in self.without:
            how = MGPU
        self.say(thread, "sync", how, stream)
        join(self.clock(thread), stream.clock)

    def _host_wait(self, thread: int, last: Stream, choice: int) -> None:
        self.touch(thread, last)
        how = choice // 8 % 5
        event = self.event(thread, choice & 1) if how == 4 else None
        if event is None:
            self.sync(thread, how % 4, last)
        else:
            self.record(thread, choice & 1, event, last)
            self.say(thread, "eventsync", choice >> 1 & 1, event)
            self.unevent(thread, choice & 1, event)
        join(self.clock(thread), last.clock)

    def submit(
        self, stream: Stream, *buffers: Buffer, real: bool = True, seen: bool = False
    ) -> None:
        """Adds an operation to the stream, and marks this operation as the last operation on the
        buffers. If `real` is false, stock submits nothing for this operation."""
        if real:
            join(stream.clock, self._implied(stream))
        stream.count += 1
        stream.clock[stream] = stream.count
        for buffer in buffers:
            buffer.last = (stream, stream.count)
            buffer.seen = seen

    def settle(self, thread: int, choice: int, buffer: Buffer) -> None:
        """If work on the buffer may be pending, makes the host wait, so that the host can read the
        buffer's content."""
        self.touch(thread, buffer)
        if buffer.last is None:
            return
        last, number = buffer.last
        if self.clock(thread).get(last, 0) < number:
            self._host_wait(thread, last, choice)

    # ---- objects ----

    def pick(self, objects: Sequence, byte: int):
        if objects is self.streams and len(objects) > 1 and not self.any_stream:
            objects = objects[1:]  # without the null stream
        return objects[byte % len(objects)] if objects else None

    def event(self, thread: int, who: int) -> Event | None:
        index = self.index("event")
        if index is None:
            return None
        event = Event(index, self.caller(who), thread)
        self.ask("ok", thread, "event", event.who, event)
        return event

    def record(self, thread: int, who: int, event: Event, stream: Stream) -> None:
        self.touch(thread, event)
        self.prepare(thread, stream)
        self.say(thread, "record", who, event, stream)
        self.submit(stream)
        event.clock = dict(stream.clock)

    def unevent(self, thread: int, who: int, event: Event) -> None:
        self.touch(thread, event)
        if len(self.held) > 1 and event.who == HIP:
            who = HIP  # docs/stock.md: HIP does not tell on which device
        self.crosses |= who != event.who
        self.say(thread, "unevent", who, event)

    def _may_be_early(self, buffer: Buffer) -> bool:
        """Returns whether a program may free the buffer while the buffer's last operation is
        pending. Stock's mgpuMemFree waits for the pending operation. The function returns true only
        if the library allocated the buffer, and the program submitted the last operation through
        the library."""
        return buffer.kind == ALLOCATED and buffer.seen

    def release(self, thread: int, buffer: Buffer, who: int, choice: int, stream: Stream) -> None:
        """Frees a buffer. mgpuMemFree frees in stream order, and hipFree waits for the device. The
        other functions do not wait, so the program first waits for all work on the buffer."""
        if buffer.kind == GLOBAL:
            return
        self.touch(thread, buffer)
        if buffer.kind in (ALLOCATED, MALLOC, MANAGED):
            if who == MGPU and stream is not self.null:
                self.touch(thread, stream)
                if choice % 2 or not self._may_be_early(buffer):
                    self.order(thread, stream, choice, buffer)
                self.submit(stream, real=False)
            elif who == MGPU:
                self.touch(thread, stream)
            who = MGPU if who == MGPU or self.is_alone else HIP
            self.crosses |= (who == MGPU) != (buffer.kind == ALLOCATED)
            self.say(thread, "free", who, buffer, stream)
        else:
            self.settle(thread, choice, buffer)
            self.say(thread, "free", buffer.kind, buffer, 0)
        self.buffers.remove(buffer)

    def release_registered(self, thread: int, *more: int) -> None:
        """Frees the registered buffers, and those of the kinds in `more`."""
        for buffer in list(self.buffers):
            if buffer.kind in (MGPU_REGISTERED, REGISTERED, *more):
                self.release(thread, buffer, MGPU, 0, self.null)

    def unload(self, thread: int, module: Module, who: int) -> None:
        """Unloads a module after its work is done, because HIP does not wait for that work."""
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

    def leave(self, thread: int, stream: Stream, choice: int) -> None:
        """Makes the host or another stream wait for a stream's work on buffers and modules, before
        the program destroys the stream."""
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
                self.submit(other, *mine, real=False)

    def uncrowd(self, thread: int, crowd: Crowd, who: int) -> None:
        self.touch(thread, crowd, crowd.stream)
        text = "0 wrong" if crowd.index == BLOCKS else None
        self.ask(text, thread, "uncrowd", who, crowd, crowd.stream)
        self.submit(crowd.stream)
        join(self.clock(thread), crowd.stream.clock)
        self.crowds.remove(crowd)

    def _cells(self) -> list[Buffer]:
        return [m.cell for m in self.modules if m.cell is not None and m.cell not in self.buffers]

    # ---- the end ----

    def finish(self, thread: int) -> None:
        """Adds lines that read the content of every object. Most programs then release all objects;
        a few programs keep the objects until the process ends."""
        leaves = self.head[2] % 8 == 7 and not self.memory
        for device in reversed(range(len(self.held))):
            self.enter(thread, device)
            self._read_all(thread)
            if not leaves:
                self._give_all_back(thread)
            elif "leaves-registered" in self.without:
                self.release_registered(thread)
        self.last_error(thread)
        self._await_all(thread)  # another thread's refused call is also a misuse
        self.ask(None, thread, "misuse")
        self._end()

    def _ending(self) -> Ending:
        endings = [one for one in Ending if one.word not in self.without]
        return endings[self.head[3] % len(endings)]

    def _end(self) -> None:
        """If threads or a stream must be busy at exit, adds the steps that start the threads or
        block the stream."""
        if self.ending in (Ending.BUSY, Ending.BUSY_HANDLERS):
            kinds = self.head[3] // 4 & BUSY_WITH_ALL or BUSY_WITH_ALL
            threads, rounds = 1 + self.head[1] % 3, self.head[1] // 4
            self.say(MAIN, "busy", threads, self.head[2], kinds, rounds, len(self.held))
        elif self.ending == Ending.HELD:
            stream = Stream(self.index("stream") or 1, self.head[1] % 2, MAIN)
            self.ask("ok", MAIN, "stream", stream.who, stream)
            self.say(MAIN, "hold", stream, 0)

    def _read_all(self, thread: int) -> None:
        for crowd in list(self.crowds):
            self.uncrowd(thread, crowd, 0)
        for buffer in list(self.buffers):
            if buffer.known:
                self.down(thread, buffer, self.null, MGPU, 0, buffer.known, 0, 0)

    def _give_all_back(self, thread: int) -> None:
        for event in self.events:
            self.unevent(thread, event.who, event)
        for buffer in list(self.buffers):
            self.release(thread, buffer, MGPU, 2, self.streams[-1])
        for module in list(self.modules):
            self.unload(thread, module, module.who)
        for stream in self.streams[1:]:
            self.touch(thread, stream)
            self.say(thread, "unstream", stream.who if stream.who != 2 else HIP, stream)

    # ---- what several actions share ----

    def last_error(self, thread: int) -> None:
        """Reads the thread's last error. If no call of the thread has failed since the previous
        read, the expected result is that no error is set."""
        own = os_thread(thread)
        if own in self.pending:
            self.say(thread, "lasterror", 0)
            self.pending.discard(own)
        else:
            self.ask("last error 0", thread, "lasterror", 1)

    def down(self, thread, buffer, stream, who, offset, count, choice, place) -> None:
        self.order(thread, stream, choice, buffer)
        text = digest(buffer.content[offset : offset + count])
        self.submit(stream, buffer, seen=who == MGPU)
        self.ask(text, thread, "down", who, buffer, offset, count, stream, place)
        join(self.clock(thread), stream.clock)
