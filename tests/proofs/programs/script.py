"""Writes the lines of a program, and the result that each line must have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mgpu_rt._selftest import right
from mgpu_rt._selftest.sequences import Case
from tests.proofs.programs import images

NULL = 0  # the null stream, and no object of any kind
BUFFER, STREAM, EVENT, MODULE, FUNCTION = range(5)
KINDS = ("buffer", "stream", "event", "module", "function")
KERNELS = ("mix", "slow", "copy", "bump", "where")
HIP = 1  # who calls: HIP's function, not the library's
MANAGED, PINNED, REGISTERED, HEAP = 2, 3, 4, 6  # memory by
WORDS = 1024
HELD_MS = 60  # time in which a held stream waits at most
LONG_MS = 5_000  # where no call waits for it until it is released


def content(words: Sequence[int]) -> str:
    """Returns the text that the player prints after it has read these words."""
    words = [word % (1 << 32) for word in words]
    total = sum(word * (2 * i + 1) for i, word in enumerate(words)) % (1 << 64)
    return f"{words[0]} {total:x}"


def filled(value: int, count: int = WORDS) -> str:
    """Returns content([value] * count): the sum of the first odd numbers is the square of their
    number."""
    value %= 1 << 32
    return f"{value} {value * count**2 % (1 << 64):x}"


def pattern(seed: int, count: int = WORDS) -> list[int]:
    """Returns the words that `up` copies to the device."""
    return [seed + 7 * i for i in range(count)]


def mixed(words: Iterable[int], image: str, k: int) -> list[int]:
    """Returns the words that the image's kernel "mix" computes from `words`."""
    return [3 * word + k + images.VALUES[image] for word in words]


@dataclass
class Script:
    """One program while it is being written. Objects are numbered separately for each kind."""

    lines: list[str] = field(default_factory=list)
    expected: dict[int, str | None] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)
    threads: int = 1
    thread: int = 0  # the thread that plays the next lines

    def new(self, kind: str) -> int:
        self.made[kind] += 1
        return self.made[kind]

    def step(self, *words: object, says: str | None = None) -> None:
        self.lines.append(" ".join(map(str, (self.thread, *words))))
        if says is not None:
            self.expected[len(self.lines)] = says

    def fails(self, call: str) -> None:
        """Expects that `call` has failed in the last step with a message, and that the thread's
        last error is set."""
        self.failures.append(call)
        self.step("lasterror", 2, says="an error")

    # ---- streams and events ----

    def stream(self, who: int = 0) -> int:
        made = self.new("stream")
        self.step("stream", who, made, says="ok")
        return made

    def streams(self, count: int) -> list[int]:
        return [self.stream() for _ in range(count)]

    def unstream(self, stream: int, who: int = 0) -> None:
        self.step("unstream", who, stream)

    def sync(self, stream: int, who: int = 0) -> None:
        self.step("sync", who, stream)

    def hold(self, stream: int, ms: int = HELD_MS) -> int:
        hold = self.new("hold")
        self.step("hold", stream, hold, ms)
        return hold

    def let(self, hold: int) -> None:
        self.step("let", hold)

    def at_work(self, stream: int, says: str | None = "at work") -> None:
        self.step("atwork", stream, says=says)

    def lend(self, stream: int) -> None:
        self.step("lend", stream, says="0")

    def event(self, who: int = 0) -> int:
        made = self.new("event")
        self.step("event", who, made, says="ok")
        return made

    def record(self, event: int, stream: int, who: int = 0) -> None:
        self.step("record", who, event, stream)

    def recorded(self, stream: int) -> int:
        event = self.event()
        self.record(event, stream)
        return event

    def wait_event(self, event: int, stream: int) -> None:
        self.step("waitevent", 0, event, stream)

    def sync_event(self, event: int) -> None:
        self.step("eventsync", 0, event)

    def unevent(self, event: int) -> None:
        self.step("unevent", 0, event)

    # ---- handles ----

    def same(self, kind: int, first: int, second: int, says: str) -> None:
        self.step("same", kind, first, second, says=says)

    def name(self, kind: int, old: int, to: int | None = None, offset: int = 0) -> int:
        """Returns a second number for a handle. The second number remains valid when a step removes
        the first number."""
        to = kind if to is None else to
        new = self.new(KINDS[to])
        self.step("name", to, new, kind, old, offset)
        return new

    def again(self, kind: int, old: int, how: int = 0) -> int:
        """Creates an object of the foreign user. The object gets the handle of the old object if
        HIP uses this handle again."""
        new = self.new(KINDS[kind])
        self.step("again", kind, new, old, how)
        return new

    # ---- memory ----

    def alloc(self, stream: int, words: int = WORDS, shared: bool = False, who: int = 0) -> int:
        made = self.new("buffer")
        self.step("malloc", who, made, 4 * words, stream, int(shared), says="ok")
        return made

    def free(self, buffer: int, stream: int, who: int = 0) -> None:
        self.step("free", who, buffer, stream)

    def fill(self, buffer: int, value: int, stream: int, count: int = WORDS, who: int = 0) -> None:
        self.step("fill", who, buffer, 0, count, value, stream)

    def up(self, buffer: int, seed: int, stream: int, count: int = WORDS, place: int = 0) -> None:
        """Copies words of `pattern` from host memory. The player overwrites the host memory
        directly after the call."""
        self.step("up", 0, buffer, 0, count, stream, seed, place)

    def read(
        self, buffer: int, stream: int, says: str | None, count: int = WORDS, who: int = 0
    ) -> None:
        self.step("down", who, buffer, 0, count, stream, 0, says=says)

    def copy(self, to: int, source: int, stream: int, count: int = WORDS, who: int = 0) -> None:
        self.step("copy", who, to, 0, source, 0, count, stream)

    def pinned(self, words: int = WORDS) -> int:
        """Allocates host memory through HIP, and fills it with words that no later copy writes."""
        made = self.new("buffer")
        self.step("malloc", PINNED, made, 4 * words, NULL, 0, says="ok")
        self.step("hostset", made, words, 5)
        return made

    def arrive(self, host: int, value: int, stream: int, who: int = 0) -> None:
        """Copies a value from the device to host memory, on a stream that is held for 30 ms. A fill
        would not wait for the held stream, because HIP 5.2.3 fills host memory at once."""
        block = self.alloc(NULL)
        self.fill(block, value, NULL)
        self.sync(NULL, 3)
        self.hold(stream, 30)
        self.copy(host, block, stream, who=who)

    def see(self, buffer: int, says: str | None, count: int = WORDS) -> None:
        """Reads the words on the host."""
        self.step("hostsee", buffer, count, says=says)

    # ---- modules ----

    def load(self, image: str) -> int:
        made = self.new("module")
        number = images.NAMES.index(image)
        self.step("load", 0, made, number, 0, says="ok")
        return made

    def unload(self, module: int) -> None:
        self.step("unload", 0, module)

    def function(self, module: int, kernel: str = "mix") -> int:
        made = self.new("function")
        number = KERNELS.index(kernel)
        self.step("function", 0, made, module, number, 0, says="ok")
        return made

    def launch(
        self, function: int, stream: int, buffer: int, k: int = 0, kernel: str = "mix",
        count: int = WORDS, who: int = 0,
    ) -> None:  # fmt: skip
        """For the kernel "copy", `k` is the source buffer."""
        self.step("launch", who, function, KERNELS.index(kernel), stream, buffer, count, k)


Written = Callable[[Script], None]


@dataclass
class Group:
    """Programs that one process plays, and the settings of these programs (see sequences.Case)."""

    name: str
    sides: tuple[str, ...] = ()  # none: all sides, or those that permit calls of HIP by others
    options: dict[str, str] = field(default_factory=dict)
    known: bool = False
    alone: bool = False  # no other code calls HIP
    devices: int = 1
    harsh: bool = False  # the case resets the device
    amd: bool = False  # NVIDIA's driver is not asked, or has other answers
    pins: bool = False  # only a device that pins pages shows its result
    written: list[Written] = field(default_factory=list)

    def __call__(self, write: Written) -> Written:
        self.written.append(write)
        return write

    @property
    def check(self) -> str:
        """Returns the name of the check that plays the group."""
        return f"{'resets' if self.harsh else 'proofs'}-{self.name}"

    def case(self) -> Case:
        """Returns the group's programs."""
        scripts = []
        for write in self.written:
            script = Script()
            script.step("empty")
            write(script)
            scripts.append(script)
        return Case(
            images=images.NAMES,
            threads={i: one.threads for i, one in enumerate(scripts)},
            lines={i: one.lines for i, one in enumerate(scripts)},
            expected={i: one.expected for i, one in enumerate(scripts)},
            sides=list(self.sides or (right.SIDES if self.alone else ())),
            options=self.options,
            failures={i: one.failures for i, one in enumerate(scripts) if one.failures},
            known=self.known,
            devices=self.devices,
            amd=self.amd,
        )
