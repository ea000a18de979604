"""Simulates how the cache of device memory serves programs whose sizes change.

`python -m bench.simulate.blocks` prints a row for each policy. A cell gives the calls of hipMalloc,
and the allocations that got a larger block. After them the cell
gives the quotient of two peaks: the memory of HIP and the memory of the program.

`--trace FILE` simulates a recorded trace, a text file with one event a line: `+ NAME BYTES` or
`- NAME`. bench/results/blocks.md has the figures by which the factors of
csrc/runtime/memory/block_pools.c and eviction.c were chosen.
"""

from __future__ import annotations

import argparse
import bisect
import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

GRAIN = 256
EXACT_UP_TO = 64 << 10
KIB, MIB = 1 << 10, 1 << 20

Event = tuple[str, int]
"""A buffer's name and the bytes that the program allocates for it; 0: the program frees it."""


def exact(size: int) -> int:
    """Rounds a size to HIP's grain."""
    return -(-size // GRAIN) * GRAIN


def eighth(size: int) -> int:
    """Rounds a size above 64 KiB up to an eighth of a power of two."""
    if size <= EXACT_UP_TO:
        return exact(size)
    step = 1 << ((size - 1).bit_length() - 4)
    return -(-size // step) * step


@dataclass
class Policy:
    """The sizes of blocks, the largest block that a miss may take, and the bound of idle memory."""

    name: str
    rounding: Callable[[int], int]
    larger: float = 1.0  # a miss may take an idle block up to this factor larger
    small: float = 0.0  # a small request may take a large block up to this factor larger
    peak: float = 0.0  # a free evicts idle blocks beyond this multiple of the recent peak; 0: never
    kept: float = 1 - 1 / 128  # the part of the recent peak that remains after a miss
    patience: int = 0  # a size gets a block of its own after this many larger ones; 0: never


@dataclass
class Outcome:
    """Counts of one simulation."""

    allocations: int = 0
    misses: int = 0
    larger: int = 0  # allocations that got a larger block, after a search
    evictions: int = 0
    program_peak: int = 0
    reserved_peak: int = 0


@dataclass
class Cache:
    """Idle blocks of one device, in the order of their last free."""

    policy: Policy
    idle: OrderedDict[int, int] = field(default_factory=OrderedDict)  # block: its size
    by_size: list[tuple[int, int]] = field(default_factory=list)
    held: int = 0  # the bytes of large blocks that the program has asked for, and has not freed
    reserved: int = 0
    large: int = 0  # the part of `reserved` that is in large blocks
    recent: float = 0.0
    blocks: int = 0
    larger: Counter[int] = field(default_factory=Counter)  # how often a size took a larger block

    def _take(self, size: int) -> tuple[int, int] | None:
        at = bisect.bisect_left(self.by_size, (size, 0))
        most = size * self.policy.larger
        is_there = at < len(self.by_size) and self.by_size[at][0] == size
        if size <= EXACT_UP_TO and not is_there:
            at = bisect.bisect_left(self.by_size, (EXACT_UP_TO + 1, 0))
            most = size * self.policy.small
        if self.policy.patience and self.larger[size] >= self.policy.patience:
            most = size
        if at == len(self.by_size) or not (is_there or self.by_size[at][0] <= most):
            self.larger[size] = 0
            return None
        self.larger[size] += self.by_size[at][0] > size
        found = self.by_size.pop(at)
        del self.idle[found[1]]
        return found

    def allocate(self, bytes_: int, outcome: Outcome) -> tuple[int, int]:
        """Returns the size and the number of the block that serves a request."""
        size = self.policy.rounding(bytes_)
        found = self._take(size)
        outcome.larger += found is not None and found[0] > size
        outcome.allocations += 1
        if found is None:
            self.blocks += 1
            outcome.misses += 1
            found = (size, self.blocks)
            self.reserved += size
            if size > EXACT_UP_TO:
                self.large += size
                self.recent *= self.policy.kept
                self.recent = max(self.recent, self.held + bytes_)
        self.held += bytes_ if found[0] > EXACT_UP_TO else 0
        outcome.reserved_peak = max(outcome.reserved_peak, self.reserved)
        return found

    def free(self, bytes_: int, block: tuple[int, int], outcome: Outcome) -> None:
        """Makes a block idle, and evicts the oldest idle blocks beyond the bound."""
        if self.large > self.policy.peak * self.recent:
            self.recent = max(self.recent, self.held)
        self.held -= bytes_ if block[0] > EXACT_UP_TO else 0
        self.idle[block[1]] = block[0]
        bisect.insort(self.by_size, block)
        while self.policy.peak and self.idle and self.large > self.policy.peak * self.recent:
            number, size = self.idle.popitem(last=False)
            self.by_size.remove((size, number))
            self.reserved -= size
            self.large -= size if size > EXACT_UP_TO else 0
            outcome.evictions += 1


def simulate(events: Iterator[Event], policy: Policy) -> Outcome:
    """Runs one program with one policy."""
    cache, outcome = Cache(policy), Outcome()
    live: dict[str, tuple[int, tuple[int, int]]] = {}
    program = 0
    for name, bytes_ in events:
        if bytes_:
            live[name] = (bytes_, cache.allocate(bytes_, outcome))
            program += bytes_
            outcome.program_peak = max(outcome.program_peak, program)
        else:
            freed, block = live.pop(name)
            program -= freed
            cache.free(freed, block, outcome)
    return outcome


# ---- programs ----


def _together(rounds: int, sizes: Callable[[int], list[int]]) -> Iterator[Event]:
    """Allocates all buffers of a round, then frees them."""
    for step in range(rounds):
        sized = sizes(step)
        for i, size in enumerate(sized):
            yield str(i), size
        for i in range(len(sized)):
            yield str(i), 0


def fixed() -> Iterator[Event]:
    """Allocates four buffers of fixed sizes."""
    return _together(400, lambda _: [MIB, 2 * MIB, 3 * MIB, 4 * MIB])


def grow() -> Iterator[Event]:
    """Allocates four buffers that grow from 1 to 400 units."""
    return _together(400, lambda step: [(step + 1) * unit * 12 * KIB for unit in (1, 1, 2, 4)])


def anything() -> Iterator[Event]:
    """Allocates four buffers of random sizes."""
    rng = random.Random(7)
    return _together(400, lambda _: [rng.randrange(4 * KIB, 16 * MIB) for _ in range(4)])


def wide() -> Iterator[Event]:
    """Allocates four buffers whose sizes are spread over many magnitudes."""
    rng = random.Random(8)
    return _together(400, lambda _: [int(2 ** rng.uniform(12, 26)) for _ in range(4)])


def kv_cache() -> Iterator[Event]:
    """Replaces keys and values by buffers that are one step larger; the scores are of each step."""
    unit, before = 64 * KIB, 0
    for step in range(1, 401):
        yield f"k{step}", step * unit
        yield f"v{step}", step * unit
        yield "scores", step * 4 * KIB
        if before:
            yield f"k{before}", 0
            yield f"v{before}", 0
        yield "scores", 0
        before = step


def ragged() -> Iterator[Event]:
    """Allocates activations for batches of random length, beside weights that stay."""
    rng = random.Random(9)
    yield "weights", 32 * MIB
    for _ in range(400):
        length = rng.randrange(16, 1025)
        for name, unit in (("in", 4), ("hidden", 16), ("out", 4)):
            yield name, length * unit * KIB
        for name in ("in", "hidden", "out"):
            yield name, 0


def batches() -> Iterator[Event]:
    """Allocates activations for batches of random length, and nothing that stays."""
    rng = random.Random(9)
    lengths = [rng.randrange(16, 1025) for _ in range(1200)]
    return _together(1200, lambda step: [lengths[step] * unit * KIB for unit in (4, 16, 4)])


def passes() -> Iterator[Event]:
    """Runs a network on batches of random length; a layer's input is freed after its output."""
    rng = random.Random(4)
    for _ in range(300):
        length = rng.randrange(16, 1025)
        for layer, unit in enumerate((4, 16, 4, 8, 32, 2)):
            yield f"layer {layer}", length * unit * KIB
            if layer:
                yield f"layer {layer - 1}", 0
        yield "layer 5", 0


def decode() -> Iterator[Event]:
    """Runs eight sequences that grow and end; short-lived activations have fixed sizes."""
    rng = random.Random(10)
    lengths = dict.fromkeys(range(8), 0)
    for step in range(1200):
        for sequence in lengths:
            old = lengths[sequence]
            new = old + 1 if old < 400 and rng.random() > 0.004 else rng.randrange(8, 64)
            yield f"{sequence}.{step}", new * 32 * KIB
            if step:
                yield f"{sequence}.{step - 1}", 0
            lengths[sequence] = new
            yield "act", 256 * KIB
            yield "logits", 128 * KIB
            yield "act", 0
            yield "logits", 0


def in_turn() -> Iterator[Event]:
    """Allocates and frees two buffers, one after the other."""
    for step in range(800):
        yield "buffer", (1 + step % 2) * MIB
        yield "buffer", 0


def phases() -> Iterator[Event]:
    """Alternates between two sets of sizes, eight rounds each."""
    sets = [[MIB * n for n in (1, 2, 5, 9)], [MIB * n for n in (3, 4, 7, 12)]]
    return _together(400, lambda step: sets[step // 8 % 2])


def shrink() -> Iterator[Event]:
    """Allocates four buffers that shrink from 400 to 1 units."""
    return _together(400, lambda step: [(400 - step) * unit * 12 * KIB for unit in (1, 1, 2, 4)])


def bench_ragged() -> Iterator[Event]:
    """Makes the allocations of 2000 batches of bench/programs/ragged.mlir."""
    state = 1
    for _ in range(2000):
        state = (state * 1664525 + 1013904223) % 2**32
        rows = (state >> 24) + 1
        yield from (("batch", rows * KIB), ("wide", 4 * rows * KIB), ("batch", 0), ("wide", 0))


def bench_grow() -> Iterator[Event]:
    """Makes the allocations of 400 steps of bench/programs/grow.mlir."""
    yield from (("k64", 64 * KIB), ("v64", 64 * KIB), ("total", KIB))
    for rows in range(64, 464):
        new = (rows + 1) * KIB
        yield from ((f"k{rows + 1}", new), (f"v{rows + 1}", new), ("scores", new))
        yield from ((f"k{rows}", 0), (f"v{rows}", 0), ("scores", 0))


PROGRAMS: dict[str, Callable[[], Iterator[Event]]] = {
    "fixed": fixed,
    "grow": grow,
    "shrink": shrink,
    "random": anything,
    "wide": wide,
    "kv-cache": kv_cache,
    "ragged": ragged,
    "batches": batches,
    "passes": passes,
    "decode": decode,
    "phases": phases,
    "in turn": in_turn,
    "bench's ragged": bench_ragged,
    "bench's grow": bench_grow,
}

#: The policy of the library.
CHOSEN = Policy("chosen", eighth, 3.5, 16, 3 / 2, 1 - 1 / 512, patience=255)
POLICIES = [
    Policy("exact", exact),
    Policy("classes", eighth),
    CHOSEN,
    *(replace(CHOSEN, name=f"F {f}", larger=f) for f in (2, 3, 4)),
    *(replace(CHOSEN, name=f"S {s}", small=s) for s in (0, 8, 32)),
    *(replace(CHOSEN, name=f"G {g}/16", peak=g / 16) for g in (20, 22, 23, 28)),
    *(replace(CHOSEN, name=f"D {n}", kept=1 - 1 / n) for n in (128, 2048)),
    *(replace(CHOSEN, name=f"P {n}", patience=n) for n in (0, 16, 64)),
]


def recorded(path: Path) -> Iterator[Event]:
    """Reads the events of a recorded trace."""
    for line in path.read_text().splitlines():
        sign, name, *size = line.split()
        yield name, int(size[0]) if sign == "+" else 0


def table(programs: dict[str, Callable[[], Iterator[Event]]], policies: list[Policy]) -> str:
    """Returns a table in Markdown: `hipMalloc calls / peak of reserved by peak of the program`."""
    lines = [
        "| policy | " + " | ".join(programs) + " |",
        "|---|" + "---:|" * len(programs),
    ]
    for policy in policies:
        cells = []
        for program in programs.values():
            outcome = simulate(program(), policy)
            ratio = outcome.reserved_peak / outcome.program_peak
            cells.append(f"{outcome.misses} + {outcome.larger} / {ratio:.2f}")
        lines.append(f"| {policy.name} | " + " | ".join(cells) + " |")
    counts = [str(simulate(program(), POLICIES[0]).allocations) for program in programs.values()]
    return "\n".join([*lines, "| allocations | " + " | ".join(counts) + " |"])


def main() -> None:
    """Prints the table of the generated programs, or of a recorded trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, help="a recorded trace")
    trace: Path | None = parser.parse_args().trace
    print(table({trace.name: lambda: recorded(trace)} if trace else PROGRAMS, POLICIES))


if __name__ == "__main__":
    main()
