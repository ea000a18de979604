"""Makes the tables of one run or of several runs, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple, TypeVar

from mgpu_rt._cli.stats.statistics import (
    MANY,
    Cache,
    Counter,
    Memory,
    Statistics,
    devices,
    total,
    warning,
)
from mgpu_rt._text import NONE, columns, printable, shown, size


class Side(NamedTuple):
    """A run that the tables show, under a name such as "before"."""

    name: str
    run: Statistics
    source: str  # the path of the run's file, or the way in which the program ran


class Table(NamedTuple):
    """A table. The first head names the table, and the first cell of a row names the row."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    total: tuple[str, ...] | None = None


# ---- the kinds of calls ----
#
# The runtime queries HIP before it takes a shortcut, because other code may have called HIP since
# the last call (docs/rule.md). A query does no work for the program, so the tables list queries
# separately.

#: The HIP functions by which the runtime queries HIP before a shortcut. An error code is a valid
#: result of a query.
QUESTIONS = (
    "hipEventQuery",
    "hipGetLastError",
    "hipMemGetAddressRange",
    "hipPeekAtLastError",
    "hipPointerGetAttribute",
    "hipPointerGetAttributes",
    "hipStreamGetDevice",
    "hipStreamGetFlags",
    "hipStreamQuery",
)

#: The driver's functions that only wait for the GPU. The library also calls these functions when
#: the program copies or frees memory.
WAITS = ("hipStreamSynchronize", "hipEventSynchronize", "hipDeviceSynchronize")

#: From this part of the program's calls on, and from MANY calls on, it is worth a change to save
#: them.
PART = 0.1

PURPOSE = (
    "The library asks the driver before it takes a shortcut: is the stream idle, does the "
    "program still own the block? MGPU_RT_EXCLUSIVE=on leaves out most of these questions. AMD's "
    "HIP from 5.3 on makes most of them unnecessary."
)

LATER = (
    "Stock waits for the GPU in mgpuMemFree and mgpuStreamDestroy. This library waits in a later "
    "call."
)

FAILED = "Calls failed, so the times of the calls do not compare."

DIFFERENT = "The sides made different calls, so the totals do not compare."

GRAPHS = "Launches of graphs are no calls, so the totals do not compare."

FEWEST = 100  # calls of one side, for a ratio
FEW = (
    f"A row of fewer than {FEWEST} calls on each side has no ratio: its times differ most by "
    "chance."
)
ONCE = (
    "Each side ran once, so a row may differ by chance: `mgpu-rt compare --repeat 5 -- PROGRAM` "
    "compares whole runs, with stock's behaviour and with the cache."
)

Counted = TypeVar("Counted")


def work(calls: Mapping[str, Counted]) -> dict[str, Counted]:
    """Returns all calls except the queries."""
    return {name: counted for name, counted in calls.items() if name not in QUESTIONS}


def questions(calls: Mapping[str, Counted]) -> dict[str, Counted]:
    return {name: counted for name, counted in calls.items() if name in QUESTIONS}


def asks_often(run: Statistics, stock: Statistics | None = None) -> bool:
    """Returns whether MGPU_RT_EXCLUSIVE=on would leave out many queries: they took a considerable
    part of the program's calls, or made the driver's calls more than stock's. Launches of graphs
    are in no call's time."""
    if run.is_stock or run.is_exclusive or run.graphs.launches:
        return False
    asked, whole = total(questions(run.driver).values()), total(run.program.values())
    before = total(stock.driver.values()).calls if stock else 0
    more = before and total(run.driver.values()).calls > before
    return asked.calls >= MANY and bool(more or asked.ns >= PART * whole.ns)


def waits(driver: Mapping[str, Counter]) -> Counter:
    return total(driver[name] for name in WAITS if name in driver)


# ---- tables ----

LAUNCHES = "launches of kernels, host time"


def _driver(run: Statistics) -> dict[str, Counter]:
    """Returns the calls of the driver, with the queries in one row."""
    asked = questions(run.driver)
    row = {"questions, below": total(asked.values())} if asked else {}
    return {**work(run.driver), **row}


#: The counters of a run, by the title of their table.
_LAYERS: dict[str, Callable[[Statistics], dict[str, Counter]]] = {
    "calls of the program": lambda run: run.program,
    "calls of the driver": _driver,
    "questions to the driver": lambda run: questions(run.driver),
    LAUNCHES: lambda run: run.kernels,
}


def calls(sides: Sequence[Side]) -> Iterator[Table]:
    """Yields the tables of counters, the longest time first."""
    for title, layer in _LAYERS.items():
        layers = [layer(side.run) for side in sides]
        if any(layers):
            yield _counters(title, sides, layers)


#: The tables of what the program asks for, which is equal in runs that compare.
_ASKED = ("calls of the program", LAUNCHES)

#: The tables whose rows a graph's launches would change, if a graph counted at each launch.
_IN_GRAPHS = (LAUNCHES, "copies")


def _marked(title: str, sides: Sequence[Side]) -> str:
    has_graphs = any(side.run.graphs.launches for side in sides)
    return f"{title} (a graph's count once)" if has_graphs and title in _IN_GRAPHS else title


def has_ratios(sides: Sequence[Side]) -> bool:
    """Returns whether the times of two sides compare: those of an emulated device are chance."""
    return len(sides) > 1 and not warning(side.run for side in sides)


def _counters(title: str, sides: Sequence[Side], layers: Sequence[Mapping[str, Counter]]) -> Table:
    compare_times = has_ratios(sides)
    is_other_work = title in _ASKED or bool(incomparable(side.run for side in sides))

    def row(name: str, counters: Sequence[Counter | None]) -> tuple[str, ...]:
        counts = [str(counter.calls) if counter else NONE for counter in counters]
        times = [f"{counter.ns / 1e6:.3f}" if counter else NONE for counter in counters]
        compares = counts[0] == counts[-1] or not is_other_work
        last = factor(ratio(counters[0], counters[-1])) if compares else NONE
        return (name, *counts, *times, *([last] if compare_times else []))

    rows = [row(shown(name), [c.get(name) for c in layers]) for name in _ordered(layers)]
    sums = row("total", [summed(layer) for layer in layers])
    if compare_times and incomparable(side.run for side in sides):
        sums = (*sums[:-1], NONE)
    heads = [*_heads("calls", sides), *_heads("ms", sides)]
    return Table((_marked(title, sides), *heads, *(["ratio"] * compare_times)), rows, sums)


def _heads(unit: str, sides: Sequence[Side]) -> list[str]:
    """Returns heads for a value of each side: "ms before", "after"; "ms" for one side."""
    first, *others = [side.name for side in sides]
    return [f"{unit} {first}", *others] if others else [unit]


def _ordered(layers: Sequence[Mapping[str, Counter]]) -> list[str]:
    """Returns the names in all layers, by the time in the first layer that has the name."""
    first: dict[str, Counter] = {}
    for layer in layers:
        for name, counter in layer.items():
            first.setdefault(name, counter)
    return sorted(first, key=lambda name: -first[name].ns)


def caches(sides: Sequence[Side]) -> Table:
    heads = ["cache"]
    for side in sides:
        heads += [f"hits {side.name}" if len(sides) > 1 else "hits", "misses", "bypassed", "rate"]
    rows = []
    for name in dict.fromkeys(name for side in sides for name in side.run.caches):
        found = [side.run.caches.get(name) for side in sides]
        cells = [cell for cache in found for cell in _cells(cache)]
        if len(sides) == 1 and found[0]:
            cells.append(NONE if found[0].is_unused else str(found[0].evictions))
        rows.append((shown(name), *cells))
    return Table((*heads, *(["evicted"] if len(sides) == 1 else [])), rows)


def _cells(cache: Cache | None) -> tuple[str, str, str, str]:
    if cache is None or cache.is_unused:
        return NONE, NONE, NONE, NONE
    counts = (cache.hits, cache.misses, cache.bypasses)
    hits, misses, bypasses = (NONE if count is None else str(count) for count in counts)
    return hits, misses, bypasses, NONE if cache.rate is None else f"{100 * cache.rate:.1f} %"


def copies(sides: Sequence[Side]) -> Iterator[Table]:
    """Yields the table of copies and fills, unless there were none."""
    ways = dict.fromkeys(w for side in sides for w, made in side.run.copies.items() if made.calls)
    heads = [head for unit in ("calls", "bytes") for head in _heads(unit, sides)]
    rows = []
    for way in ways:
        made = [side.run.copies.get(way) for side in sides]
        counts = [str(each.calls) if each else NONE for each in made]
        sizes = [str(each.bytes) if each else NONE for each in made]
        rows.append((shown(way.replace("_", " ")), *counts, *sizes))
    if rows:
        yield Table((_marked("copies", sides), *heads), rows)


def modules(run: Statistics) -> Iterator[Table]:
    """Yields the table of images, unless none was loaded."""
    rows = []
    for module in run.modules:
        kernels = ", ".join(map(shown, module.kernels)) or NONE
        why = f" (loaded again each time: {shown(module.why)})" if module.why else ""
        numbers = map(str, (module.bytes, module.loads, module.driver_loads))
        rows.append((shown(module.image), *numbers, kernels + why))
    if rows:
        yield Table(("image", "bytes", "loads", "by the driver", "kernels"), rows)


def memory(run: Statistics) -> Iterator[Table]:
    """Yields the table of the devices' memory, unless none was counted."""
    names = [each.name for each in fields(Memory)]
    rows = []
    for device, values in run.memory.items():
        found = {name: getattr(values, name) for name in names}
        cells = (
            NONE if n is None else str(n) if "blocks" in name else size(n)
            for name, n in found.items()
        )
        rows.append((shown(device), *cells))
    if rows:
        yield Table(("device memory", *(name.replace("_", " ") for name in names)), rows)


def other_calls(sides: Sequence[Side]) -> Iterator[str]:
    """Says which call of HIP other code made first; names the side if the sides differ."""
    found: dict[str, str] = {}
    for side in sides:
        if side.run.other_calls:
            found.setdefault(side.run.other_calls, f"{side.name}: ")
    for text, who in found.items():
        yield f"{who if len(found) > 1 else ''}calls of HIP by other code: {shown(text)}"


def notes(sides: Sequence[Side]) -> Iterator[str]:
    for side in sides:
        run, who = side.run, f"{side.name}: " if len(sides) > 1 else ""
        yield from (f"{who}{sentence}" for sentence in run.notes)
    if len(sides) > 1:
        yield from filter(None, (_endings(sides), _processes(sides), _reason(sides)))
        tables = ((layer(sides[0].run), layer(sides[-1].run)) for layer in _LAYERS.values())
        few = (_are_few(one[name], other.get(name)) for one, other in tables for name in one)
        if has_ratios(sides) and any(few):
            yield FEW
        if _waits_later(sides[0].run, sides[-1].run):
            yield LATER
    if asks_often(sides[-1].run, sides[0].run if len(sides) > 1 else None):
        yield PURPOSE


def _advice(sides: Sequence[Side]) -> Iterator[str]:
    for side in sides:
        who = f"{side.name}: " if len(sides) > 1 else ""
        yield from (f"{who}{sentence}" for sentence in side.run.advice)


def _waits_later(stock: Statistics, ours: Statistics) -> bool:
    """Returns whether the time of stock's frees and destroys explains another row that takes twice
    stock's time or more."""
    released = ("mgpuMemFree", "mgpuStreamDestroy")
    waited = total(stock.program[name] for name in released if name in stock.program).ns
    return stock.is_stock and any(
        before.calls >= FEWEST and 2 * before.ns <= ours.program[name].ns <= waited
        for name, before in stock.program.items()
        if name not in released and name in ours.program
    )


def _endings(sides: Sequence[Side]) -> str:
    told = []
    for side in sides:
        if count := sum(not process.by_exit for process in side.run.processes):
            told.append(f"{side.name}: {count} process{'es' * (count != 1)} did not end by exit")
    return "; ".join(told)


def _processes(sides: Sequence[Side]) -> str:
    count = max(len(side.run.processes) for side in sides)
    return f"Times are sums over {count} processes, which may have run at once." * (count > 1)


def _reason(sides: Sequence[Side]) -> str:
    """Returns the reason why totals have no ratio, unless the failed calls above are the reason."""
    reason = incomparable(side.run for side in sides)
    return "" if reason == FAILED else reason


# ---- text ----


def lines(sides: Sequence[Side]) -> Iterator[str]:
    """Yields the text of one side or two sides."""
    for side in sides:
        yield from (f"{side.name}: {failure}" for failure in side.run.failures)
    run = sides[-1].run
    if len(sides) > 1:
        yield from (f"{f'{side.name}:':<8}{printable(side.source)}" for side in sides)
    else:
        yield from (f"{shown(p.program)}, {p.description}" for p in run.processes)
    yield from _devices(sides)
    yield from other_calls(sides)
    starts = [side.run.start for side in sides]
    if any(start is not None for start in starts):
        times = (NONE if start is None else f"{start / 1e6:.3f}" for start in starts)
        head = ("once, not in the times below", *_heads("ms", sides))
        sums = max((summed_over(side.run) for side in sides), key=len)
        yield ""
        yield from right_aligned(head, [(f"HIP's start{sums}", *times)])
    before, behind = (copies(sides), memory(run)) if len(sides) == 1 else ((), ())
    for table in (*calls(sides), *before, caches(sides), *behind):
        yield ""
        last = [table.total] if table.total else []
        yield from right_aligned(table.heads, [*table.rows, *last])
    for table in modules(run) if len(sides) == 1 else ():
        yield ""
        yield from columns([table.heads, *table.rows])
    if told := [("note", note) for note in (*notes(sides), *_advice(sides))]:
        yield ""
        yield from columns(told)


def _devices(sides: Sequence[Side]) -> Iterator[str]:
    """Shows the devices of all sides; equal devices share one line."""
    for device in devices(side.run for side in sides):
        yield f"on:     {shown(device.description)}"
    if told := warning(side.run for side in sides):
        yield f"        {told}"


def factor(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def right_aligned(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    table = [head, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for first, *others in table:
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield f"{first:{widths[0]}}  {'  '.join(numbers)}".rstrip()


# ---- comparisons ----


def ratio(before: Counter | None, after: Counter | None) -> float | None:
    """Returns the ratio of the times before and after. Returns None if one of the times was not
    counted, or if both sides made few calls, whose times differ by chance."""
    if not (before and after and before.ns and after.ns) or _are_few(before, after):
        return None
    return before.ns / after.ns


def _are_few(before: Counter, after: Counter | None) -> bool:
    return after is not None and max(before.calls, after.calls) < FEWEST


def summed(counters: Mapping[str, Counter]) -> Counter | None:
    """Returns None if no call was counted."""
    return total(counters.values()) if counters else None


def summed_over(run: Statistics) -> str:
    """Returns words behind a time that is a sum over processes; "" for one process."""
    count = len(run.processes)
    return f", the sum of {count} processes" if count > 1 else ""


def incomparable(runs: Iterable[Statistics]) -> str:
    """Says why the sums over all calls do not compare; returns "" if they do. A failed call does no
    work, and a graph's launch stands for calls that are not counted. Other calls are other work."""
    every = [*runs]
    if any(run.failed for run in every):
        return FAILED
    if any(run.graphs.launches for run in every):
        return GRAPHS
    return DIFFERENT if made_other_calls(every) else ""


def made_other_calls(runs: Iterable[Statistics]) -> bool:
    made = [{name: counter.calls for name, counter in run.program.items()} for run in runs]
    return all(made) and any(each != made[0] for each in made)
