"""Implements `mgpu-rt compare --report`: one HTML page about one run or several runs, without
scripts.

This file computes the page's texts and figures. page.html lays them out, and advice.py finds the
advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mgpu_rt import __version__
from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.report.advice import advice
from mgpu_rt._cli.report.sides import Side, count, duration, plural, size
from mgpu_rt._cli.stats.statistics import (
    Cache,
    Counter,
    Statistics,
    devices,
    total,
)
from mgpu_rt._cli.stats.tables import (
    NONE,
    PURPOSE,
    WAITS,
    factor,
    pairs,
    questions,
    ratio,
    reasons,
    summed,
    waits,
    work,
)
from mgpu_rt._text import printable, shortened

ROWS = 40  # of a table; one line counts the others, and the most important rows come first
SENTENCE = 600  # letters of a text on the page


# ---- the page ----


def write(out: str, sides: Sequence[Side], notes: Sequence[str] = ()) -> None:
    """Writes the page; - means stdout. `notes` are further sentences below the headline. Raises
    CommandError."""
    text = document(sides, notes)
    if out == "-":
        import click

        return click.echo(text, nl=False)
    files.write(out, text.encode())


def document(sides: Sequence[Side], notes: Sequence[str] = ()) -> str:
    """Returns the page. Raises CommandError if jinja2 is missing."""
    last = sides[-1]
    program = last.processes[0].program if last.processes else Path(last.source).stem
    return render(
        "page.html",
        title=f"{shortened(program)} – mgpu_rt",
        program=shortened(program),
        failures=[
            f"{s.name}: {'; '.join(s.statistics.failures)}." for s in sides if s.statistics.failed
        ],
        warnings=sorted({d.warning for d in devices(s.statistics for s in sides)} - {""}),
        outcome=_outcome(sides),
        quiet=[*_quiet(sides), *notes],
        tiles=[*_tiles(sides)],
        bars=_bars(sides),
        waits=_waits(sides),
        advice=advice(last),
        calls=[*_calls(sides)],
        reasons=reasons(sides[0].statistics, sides[1].statistics) if len(sides) == 2 else {},
        caches=[*_caches(last, " after" if len(sides) > 1 else "")],
        kernels=[*_kernels(sides)],
        sources=[*map(_source, sides)],
        version=__version__,
        none=NONE,
    )


def render(template: str, folder: Path | None = None, **values: Any) -> str:
    """Fills in a template of this folder, or of `folder`. Text from files never becomes markup, and
    its unprintable characters become escapes. Raises CommandError if jinja2 is missing."""
    try:
        import jinja2
    except ImportError:
        from mgpu_rt._packages import how_to_add

        how = how_to_add("jinja2", "python3-jinja2")
        raise CommandError(f"a page needs the package jinja2: {how}") from None

    def safe(value: Any) -> Any:
        is_text = isinstance(value, str) and not hasattr(value, "__html__")
        return shortened(printable(value), SENTENCE) if is_text else value

    here = Path(__file__).parent
    loader = jinja2.FileSystemLoader([here, *filter(None, [folder])])
    environment = jinja2.Environment(
        autoescape=True,
        finalize=safe,
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(**values)


def _outcome(sides: Sequence[Side]) -> str:
    sums = [total(side.statistics.program.values()) for side in sides]
    times = [counter.ns for counter in sums]
    if len(sides) == 1:
        calls = plural(sums[0].calls, "call")
        return f"The program's {calls} to MLIR's GPU runtime took {duration(times[0])}."
    told = " and ".join(f"{duration(ns)} {s.name}" for ns, s in zip(times, sides, strict=True))
    if any(side.statistics.failed for side in sides):
        return f"The program's calls took {told}. Calls failed, so these times do not compare."
    if len(sides) == 2 and all(times):
        faster = times[0] >= times[1]
        ratio = factor(max(times) / min(times))
        told += f", {ratio} times as {'fast' if faster else 'long'}"
    starts = [duration(side.statistics.start) for side in sides]
    if set(starts) == {NONE}:
        return f"The program's calls took {told}."
    paid = " and ".join(f"{start} {s.name}" for start, s in zip(starts, sides, strict=True))
    return (
        f"The program's calls took {told}. HIP's start is in no call: each run pays it once, "
        f"{paid}."
    )


def _quiet(sides: Sequence[Side]) -> Iterator[str]:
    if len(sides) > 1 and not any(side.statistics.failed for side in sides):
        yield "Each side ran once."
    yield from (f"On {d.description}." for d in devices(side.statistics for side in sides))
    for side in sides:
        if uncounted := side.statistics.uncounted:
            yield f"{side.name}: {uncounted}."


def _source(side: Side) -> str:
    processes = [
        f"process {process.pid}"
        + (f", rank {process.rank}" if process.rank is not None else "")
        + ("" if process.by_exit else f", {process.ending}")
        for process in side.processes[:8]
    ]
    if len(side.processes) > 8:
        processes.append(f"{len(side.processes)} processes in all")
    return "; ".join(map(shortened, [f"{side.name}: {side.source}", *processes]))


# ---- figures and bars ----

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


def _tiles(sides: Sequence[Side]) -> Iterator[tuple[str, list[str]]]:
    """Yields a figure's name, and its value on each side."""
    runs = [side.statistics for side in sides]

    def each(value: Callable[[Statistics], str]) -> list[str]:
        return [value(run) for run in runs]

    def driver(run: Statistics) -> str:
        counter = summed(work(run.driver))
        return count(counter.calls if counter and not run.overridden else None)

    def asked(run: Statistics) -> str:
        counter = summed(questions(run.driver))
        return f"{count(counter.calls)} in {duration(counter.ns)}" if counter else NONE

    def launches(run: Statistics) -> int:
        named = (c for name, c in run.program.items() if name.startswith("mgpuLaunch"))
        return total(named).calls

    yield "time in calls", each(lambda run: duration(getattr(summed(run.program), "ns", None)))
    yield "launches", each(lambda run: count(launches(run)))
    yield "calls of the driver", each(driver)
    if any(questions(run.driver) for run in runs):
        yield "questions to the driver", each(asked)
    yield "served by a cache", each(lambda run: _rate(sum(run.caches.values(), Cache(0, 0, 0))))
    yield "device memory, peak", [_peak(side.files) for side in sides]


def _rate(cache: Cache) -> str:
    return NONE if cache.rate is None else f"{100 * cache.rate:.1f} %"


def _peak(files: Sequence[Statistics]) -> str:
    held = [device for file in files for device in (file.raw.get("memory") or {}).values()]
    return size(sum(device["peak_reserved"] for device in held)) if held else NONE


def _bars(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Returns a bar for each side: the time of the program's calls by group, on a common scale."""
    groups = [_groups(side.statistics) for side in sides]
    whole = max(sum(values.values()) for values in groups)
    if not whole:
        return []
    return [
        {
            "name": side.name,
            "time": duration(sum(values.values())) + (f", with {START}" if values[START] else ""),
            "parts": [
                (name, name.partition("'")[0].lower(), f"{100 * ns / whole:.2f}%", duration(ns))
                for name, ns in values.items()
                if ns
            ],
        }
        for side, values in zip(sides, groups, strict=True)
    ]


def _groups(run: Statistics) -> dict[str, int]:
    """Returns the time of each group in nanoseconds."""
    sums = {START: run.start or 0, **dict.fromkeys(GROUPS, 0)}
    for name, counter in run.program.items():
        group = next(group for group, begins in GROUPS.items() if name.startswith(begins))
        sums[group] += counter.ns
    return sums


def _waits(sides: Sequence[Side]) -> str:
    """Says for how long the driver waited for the GPU, in calls of several groups."""
    waited = [waits(side.statistics.driver) for side in sides]
    if not any(counter.calls for counter in waited):
        return ""
    times = " → ".join(duration(counter.ns or None) for counter in waited)
    return (
        f"HIP waited for the GPU {times} of these times, in calls of several groups "
        f"({', '.join(WAITS)}). HIP's other functions may wait too."
    )


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
    limit: int = ROWS


def _calls(sides: Sequence[Side]) -> Iterator[Table]:
    """Shows the program's calls, the driver's calls and the queries."""
    runs = [side.statistics for side in sides]
    yield _by_name(sides, "Calls of the program", [run.program for run in runs])
    yield _by_name(sides, "Calls of the driver", [work(run.driver) for run in runs])
    if any(asked := [questions(run.driver) for run in runs]):
        yield _by_name(sides, "Questions to the driver", asked)._replace(note=PURPOSE)


def _by_name(
    sides: Sequence[Side], caption: str, layers: list[dict[str, Counter]], thing: str = "function"
) -> Table:
    """Makes a table of counters, sorted by the first side's time, the longest first. More than two
    sides leave room for times only."""
    names = [*pairs(layers[0], {name: c for layer in layers for name, c in layer.items()})]
    sums = [summed(layer) for layer in layers]
    measures = {"calls": _number, "time": _time, "per call": _each}
    if len(sides) > 2:
        measures = {"": _time}
    heads = [
        f"{measure} {side.name}".strip() if not number else side.name
        for measure in measures
        for number, side in enumerate(sides)
    ]
    if len(sides) == 1:
        heads = [*measures]

    def row(name: str, counters: Sequence[Counter | None], is_sum: bool = False) -> list[str]:
        cells = [
            "" if is_sum and shows is _each else shows(counter)
            for shows in measures.values()
            for counter in counters
        ]
        compared = [factor(ratio(counters[0], counters[-1]))] if len(sides) > 1 else []
        return [name, *cells, *compared]

    rows = [row(shortened(name), [layer.get(name) for layer in layers]) for name in names]
    heads = [thing, *heads, *(["ratio"] if len(sides) > 1 else [])]
    return Table(caption, heads, rows, row("total", sums, True), pairs=len(sides) == 2)


def _number(counter: Counter | None) -> str:
    return count(counter.calls if counter else None)


def _time(counter: Counter | None) -> str:
    return duration(counter.ns if counter else None)


def _each(counter: Counter | None) -> str:
    return duration(counter.ns / counter.calls if counter and counter.calls else None)


def _kernels(sides: Sequence[Side]) -> Iterator[Table]:
    """Shows launches by kernel, and copies by direction."""
    kernels = [side.statistics.kernels for side in sides]
    if any(kernels):
        yield _by_name(sides, "Launches by kernel", kernels, "kernel")
    copies = [side.statistics.copies for side in sides]
    ways = dict.fromkeys(way for each in copies for way, made in each.items() if made.calls)
    rows = []
    for way in ways:
        made = [each.get(way) for each in copies]
        counts = [cell for c in made for cell in (count(c and c.calls), size(c and c.bytes))]
        rows.append([way.replace("_", " "), *counts])
    heads = [
        f"{what} {side.name}" if len(sides) > 1 else what
        for side in sides
        for what in ("calls", "bytes")
    ]
    if rows:
        yield Table("Copies and fills", ["direction", *heads], rows)


#: The program's calls that a cache serves.
_SERVED: Mapping[str, Sequence[str]] = {
    "modules": ("mgpuModuleLoad", "mgpuModuleLoadJIT"),
    "functions": ("mgpuModuleGetFunction",),
    "streams": ("mgpuStreamCreate",),
    "events": ("mgpuEventCreate",),
    "memory": ("mgpuMemAlloc",),
}


def _caches(side: Side, after: str) -> Iterator[Table]:
    """Shows the caches and modules of the last run."""
    run = side.statistics
    rows = []
    for name, cache in run.caches.items():
        served = _SERVED.get(name, ())
        asked = sum(run.program[f].calls for f in served if f in run.program)
        failed = sum(n for failure, n in run.failed.items() if failure.function in served)
        passed_on = max(0, asked - cache.hits - cache.misses - failed)
        counts = [*map(count, (cache.hits, cache.misses, passed_on))]
        cells = [*counts, _rate(cache), count(cache.evictions)]
        rows.append([shortened(name), *(cells if cache.hits or cache.misses else [NONE] * 5)])
    heads = ["cache", "hits", "misses", "passed on", "rate", "evicted"]
    told = [f"{one[0].upper()}{one[1:]}." for one in (run.graphs.summary, run.made.summary) if one]
    note = "No cache was in use in this run." if side.is_stock else " ".join(told)
    yield Table(f"Caches{',' if after else ''}{after}", heads, rows, note=note)
    if side.modules:
        heads = ["image", "bytes", "loads", "by the driver", "kernels", "why each time"]
        listed = sorted(side.modules, key=lambda module: -module.driver_loads)
        modules = [
            [
                shortened(module.image),
                *map(count, (module.bytes, module.loads, module.driver_loads)),
                ", ".join(map(shortened, module.kernels[:4])) + " …" * (len(module.kernels) > 4),
                module.why or NONE,
            ]
            for module in listed
        ]
        yield Table("Modules", heads, modules, words=heads[4:])
