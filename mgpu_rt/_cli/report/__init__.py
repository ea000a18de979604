"""Implements `mgpu-rt compare --report`: one HTML page about one run or several runs, without
scripts.

This file computes the page's texts and figures. page.html lays them out, and advice.py finds the
advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mgpu_rt import __version__
from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.report.advice import advice
from mgpu_rt._cli.report.sides import Side, count, duration, plural, size
from mgpu_rt._cli.stats.statistics import Counter, Statistics, devices, total
from mgpu_rt._cli.stats.tables import (
    GRAPHS,
    NONE,
    PURPOSE,
    cells,
    comparable,
    factor,
    pairs,
    questions,
    ratio,
    summed,
    work,
)
from mgpu_rt._packages import need
from mgpu_rt._text import printable, shortened

MANY = 24  # rows of a table from which on those below 1 % are folded
SENTENCE = 600  # letters of a text on the page


def write(out: str, sides: Sequence[Side], notes: Sequence[str] = (), repeat: int = 1) -> None:
    """Writes the page; - means stdout. `notes` are further sentences below the headline. Each side
    ran `repeat` times. Raises CommandError."""
    text = document(sides, notes, repeat)
    if out == "-":
        print(text, end="")
    else:
        files.write(out, text.encode())


def document(sides: Sequence[Side], notes: Sequence[str] = (), repeat: int = 1) -> str:
    last, runs = sides[-1], [side.statistics for side in sides]
    program = last.processes[0].program if last.processes else Path(last.source).stem
    layers = {
        "Calls of the program": lambda run: run.program,
        "Calls of the driver": lambda run: work(run.driver),
        "Questions to the driver": lambda run: questions(run.driver),
    }
    return _render(
        title=f"{shortened(program)} – mgpu_rt",
        program=shortened(program),
        failures=[f"{s.name}: {'; '.join(s.statistics.failures)}." for s in sides if s.failed],
        warnings=sorted({device.warning for device in devices(runs)} - {""}),
        outcome=_outcome(sides),
        quiet=[*_quiet(sides, repeat), *notes],
        bars=_bars(sides),
        advice=advice(last),
        calls=[*(_by_name(sides, caption, layer) for caption, layer in layers.items())],
        caches=[*_caches(last, ", after" if len(sides) > 1 else "")],
        kernels=[
            _by_name(sides, "Launches by kernel", lambda run: run.kernels, "kernel"),
            _copies(sides),
        ],
        sources=[f"{side.name}: {shortened(side.source)}" for side in sides],
        version=__version__,
        purpose=PURPOSE,
        uncounted=NONE,
    )


def _render(**values: Any) -> str:
    """Fills in page.html. Text from files never becomes markup, and its unprintable characters
    become escapes. Raises CommandError if jinja2 is missing."""
    try:
        need("a page", jinja2="jinja2")
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from None
    import jinja2

    def safe(value: Any) -> Any:
        is_text = isinstance(value, str) and not hasattr(value, "__html__")
        return shortened(printable(value), SENTENCE) if is_text else value

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    form = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(autoescape=True, finalize=safe, loader=loader, **form)
    return environment.get_template("page.html").render(**values)


def _outcome(sides: Sequence[Side]) -> str:
    sums = [total(side.statistics.program.values()) for side in sides]
    if len(sides) == 1:
        calls = plural(sums[0].calls, "call")
        return f"The program's {calls} to MLIR's GPU runtime took {duration(sums[0].ns)}."

    def each(values: Sequence[float | None]) -> str:
        return " and ".join(f"{duration(v)} {s.name}" for v, s in zip(values, sides, strict=True))

    times = [counter.ns for counter in sums]
    told = f"The program's calls took {each(times)}"
    if any(side.failed for side in sides):
        return f"{told}. Calls failed, so these times do not compare."
    if not comparable(side.statistics for side in sides):
        return f"{told}. {GRAPHS}"
    if len(sides) == 2 and all(times):
        way = "fast" if times[0] >= times[1] else "long"
        told += f", {factor(max(times) / min(times))} times as {way}"
    starts = [side.statistics.start for side in sides]
    if all(start is None for start in starts):
        return f"{told}."
    return f"{told}. HIP's start is in no call: each run pays it once, {each(starts)}."


def _quiet(sides: Sequence[Side], repeat: int) -> Iterator[str]:
    if repeat == 1 and len(sides) > 1 and not any(side.failed for side in sides):
        yield "Each side ran once."
    yield from (f"On {d.description}." for d in devices(side.statistics for side in sides))
    for side in sides:
        if uncounted := side.statistics.uncounted:
            yield f"{side.name}: {uncounted}."


# ---- bars ----

#: Groups of the program's calls, by prefixes of their names; the first matching group counts.
GROUPS = {
    "modules": ("mgpuModule",),
    "launches": ("mgpuLaunch",),
    "synchronization": ("mgpuStreamSynchronize", "mgpuEventSynchronize"),
    "streams": ("mgpuStream",),
    "events": ("mgpuEvent",),
    "copies": ("mgpuMemcpy", "mgpuMemset"),
    "memory": ("mgpuMem",),
    "other": ("",),
}

START = "HIP's start"  # a group for itself, in no call's time


def _bars(sides: Sequence[Side]) -> list[dict[str, Any]]:
    groups = [_groups(side.statistics) for side in sides]
    whole = max(sum(values.values()) for values in groups)
    bars = []
    for side, values in zip(sides, groups, strict=True):
        parts = [
            (name, name.partition("'")[0].lower(), f"{100 * ns / whole:.2f}%", duration(ns))
            for name, ns in values.items()
            if ns
        ]
        time = duration(sum(values.values())) + (f", with {START}" if values[START] else "")
        bars.append({"name": side.name, "time": time, "parts": parts})
    return bars if whole else []


def _groups(run: Statistics) -> dict[str, int]:
    sums = {START: run.start or 0, **dict.fromkeys(GROUPS, 0)}
    for name, counter in run.program.items():
        sums[next(group for group, begins in GROUPS.items() if name.startswith(begins))] += (
            counter.ns
        )
    return sums


# ---- tables ----


class Table(NamedTuple):
    """A table. The first cell of a row names the row. `pairs`: each column of values before is
    followed by the column of values after."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    total: Sequence[str] | None = None
    words: Sequence[str] = ()  # heads of columns that contain text
    pairs: bool = False
    note: str = ""
    folded: Sequence[Sequence[str]] = ()  # rows that a click shows


def _time(counter: Counter | None) -> str:
    return duration(counter and counter.ns)


_MEASURES: dict[str, Callable[[Counter | None], str]] = {
    "calls": lambda counter: count(counter and counter.calls),
    "time": _time,
    "per call": lambda c: duration(c.ns / c.calls if c and c.calls else None),
}


def _by_name(
    sides: Sequence[Side],
    caption: str,
    layer: Callable[[Statistics], dict[str, Counter]],
    thing: str = "function",
) -> Table | None:
    """Makes a table of counters, sorted by the first side's time, the longest first. More than two
    sides leave room for times only. Returns None if nothing was counted."""
    layers = [layer(side.statistics) for side in sides]
    measures = _MEASURES if len(sides) < 3 else {"": _time}
    first, *others = [side.name for side in sides]
    heads = [h for m in measures for h in (f"{m} {first}".strip(), *others)]
    is_one = len(sides) == 1

    def row(name: str, counters: Sequence[Counter | None]) -> list[str]:
        cells = [shown(counter) for shown in measures.values() for counter in counters]
        return [name, *cells, *([] if is_one else [factor(ratio(counters[0], counters[-1]))])]

    names = pairs(layers[0], {name: c for each in layers for name, c in each.items()})
    small = _small(names, layers) if len(names) >= MANY else set()
    rows, folded = (
        [row(shortened(n), [each.get(n) for each in layers]) for n in names if (n in small) is fold]
        for fold in (False, True)
    )
    sums = row("total", [summed(each) for each in layers])
    for at in range(1 + 2 * len(sides), 1 + len(measures) * len(sides)):
        sums[at] = ""  # no time of one call: the functions differ
    heads = [thing, *(measures if is_one else [*heads, "ratio"])]
    is_pair = len(sides) == 2
    return Table(caption, heads, rows, sums, pairs=is_pair, folded=folded) if names else None


def _small(names: Iterable[str], layers: Sequence[dict[str, Counter]]) -> set[str]:
    """Returns the names whose counters have less than 1 % of the time of each side."""
    least = [total(each.values()).ns / 100 for each in layers]
    return {
        name
        for name in names
        if all(name not in c or c[name].ns < ns for c, ns in zip(layers, least, strict=True))
    }


def _copies(sides: Sequence[Side]) -> Table | None:
    copies = [side.statistics.copies for side in sides]
    ways = dict.fromkeys(way for each in copies for way, made in each.items() if made.calls)
    heads = [f"{what} {s.name}" for s in sides for what in ("calls", "bytes")]
    heads = ["direction", *(heads if len(sides) > 1 else ["calls", "bytes"])]
    rows = []
    for way in ways:
        made = [each.get(way) for each in copies]
        counts = [cell for c in made for cell in (count(c and c.calls), size(c and c.bytes))]
        rows.append([way.replace("_", " "), *counts])
    return Table("Copies and fills", heads, rows) if rows else None


def _caches(side: Side, after: str) -> Iterator[Table]:
    run, rows = side.statistics, []
    for name, cache in run.caches.items():
        evicted = count(cache.evictions) if cache.hits or cache.misses else NONE
        rows.append([shortened(name), *cells(cache), evicted])
    heads = ["cache", "hits", "misses", "rate", "evicted"]
    told = [f"{one[0].upper()}{one[1:]}." for one in (run.graphs.summary, run.made.summary) if one]
    note = "No cache was in use in this run." if side.is_stock else " ".join(told)
    yield Table(f"Caches{after}", heads, rows, note=note)
    heads = ["image", "bytes", "loads", "by the driver", "kernels", "why each time"]
    modules = []
    for module in sorted(side.modules, key=lambda module: -module.driver_loads):
        kernels = ", ".join(map(shortened, module.kernels[:4])) + " …" * (len(module.kernels) > 4)
        counts = map(count, (module.bytes, module.loads, module.driver_loads))
        modules.append([shortened(module.image), *counts, kernels, module.why or NONE])
    if modules:
        yield Table("Modules", heads, modules, words=heads[4:])
