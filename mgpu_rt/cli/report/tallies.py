"""The tables of what was counted: calls, caches, modules, kernels, copies."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from mgpu_rt.cli.report import charts, words
from mgpu_rt.cli.report.markup import Content, Element, code, element
from mgpu_rt.cli.report.runs import Run
from mgpu_rt.cli.report.summary import names
from mgpu_rt.cli.report.tables import table
from mgpu_rt.cli.stats.comparison import pairs, ratio
from mgpu_rt.cli.stats.files import Counter, total

# ---- calls ----


def calls(runs: Sequence[Run]) -> list[Element]:
    """The program's, the driver's, and how long one takes."""
    layers = {
        "Calls of the program": [run.statistics.program for run in runs],
        "Calls of the driver": [run.statistics.driver for run in runs],
    }
    made = [_functions(caption, counters) for caption, counters in layers.items()]
    made[1:1] = _each(runs)
    return [*made, *_spread(runs[-1])]


def _functions(caption: str, layers: list[dict[str, Counter]], thing: str = "function") -> Element:
    if len(layers) == 1:
        heads = [thing, "calls", "time", "per call"]
        ordered = sorted(layers[0].items(), key=lambda item: -item[1].ns)
        rows = [[code(name), *_cells([counter])] for name, counter in ordered]
        return table(caption, heads, rows, total=["total", *_cells([_sum(layers[0])], False)])
    heads = [thing, "calls before", "after", "time before", "after", "per call before", "after"]
    rows = [
        [code(name), *_cells(pair), _factor(ratio(*pair))] for name, pair in pairs(*layers).items()
    ]
    both = (_sum(layers[0]), _sum(layers[1]))
    last = ["total", *_cells(both, False), _factor(ratio(*both))]
    return table(caption, [*heads, "ratio"], rows, total=last, pairs=True)


def _sum(counters: Mapping[str, Counter]) -> Counter | None:
    return total(counters.values()) if counters else None


def _cells(counters: Sequence[Counter | None], each: bool = True) -> list[Content]:
    """Calls, times, and times of one call; of different functions there is no such."""
    return [
        *(words.count(counter.calls if counter else None) for counter in counters),
        *(words.time(counter.ns if counter else None) for counter in counters),
        *(words.time(words.per_call(counter)) if each else "" for counter in counters),
    ]


def _factor(factor: float | None) -> Element:
    """A twentieth is noise."""
    kind = None
    if factor is not None and not 0.95 <= factor < 1.05:
        kind = "better" if factor > 1 else "worse"
    return element("span", words.factor(factor), class_=kind)


def _each(runs: Sequence[Run]) -> Iterator[Element]:
    """Before and after of each function, on a logarithmic scale."""
    if len(runs) == 1:
        return
    found = pairs(*(run.statistics.program for run in runs))
    rows = {name: tuple(map(words.per_call, pair)) for name, pair in found.items()}
    values = [value for pair in rows.values() for value in pair if value]
    if not values:
        return
    low, high = min(values), max(values)
    items: list[Element] = []
    for name, (before, after) in rows.items():
        told = f"{name}: {words.time(before)} before, {words.time(after)} after"
        items.append(element("dt", code(name)))
        items.append(element("dd", charts.span(told, before, after, low, high)))
    yield element(
        "figure",
        element("p", charts.key("before", "before"), charts.key("after", "after"), class_="legend"),
        element("dl", *items, class_="spans"),
        element(
            "figcaption",
            f"Time of one call, from {words.time(low)} at the left to {words.time(high)} at the "
            "right; each step to the left is a fraction of the time, not a difference.",
        ),
    )


def _spread(run: Run) -> Iterator[Element]:
    """Means hide what the trace knows."""
    if run.trace is None:
        return
    rows = []
    for name, calls_ in run.trace.program.items():
        durations = sorted(calls_.durations)
        rows.append(
            (
                sum(durations),
                [
                    code(name),
                    words.time(1000 * statistics.median(durations)),
                    words.time(1000 * durations[(len(durations) - 1) * 99 // 100]),
                    words.time(1000 * durations[-1]),
                ],
            )
        )
    rows.sort(key=lambda row: -row[0])
    heads = ["function", "median", "99 of 100 within", "longest"]
    yield table("Time of one call, by the trace", heads, [row for _, row in rows])


# ---- caches ----


def caches(runs: Sequence[Run]) -> list[Element]:
    """What each cache did, and the modules that it could not keep."""
    found = {name: None for run in runs for name in run.statistics.caches}
    if not found:
        words_ = f"{words.NONE} No statistics were given, which count what missed."
        return [element("p", words_, class_="quiet")]
    run = runs[-1]
    heads = ["cache", "hits", "misses", "passed on", "rate", "given back"]
    rows = [_cache(run, name) for name in found]
    made: list[Element] = []
    if run.is_stock:
        made.append(element("p", "No cache was at work in this run.", class_="quiet"))
    caption = "Caches" if len(runs) == 1 else "Caches, after"
    return [*made, table(caption, heads, rows), *_modules(run)]


_SERVED = {
    "modules": ("mgpuModuleLoad", "mgpuModuleLoadJIT"),
    "functions": ("mgpuModuleGetFunction",),
    "streams": ("mgpuStreamCreate",),
    "events": ("mgpuEventCreate",),
    "memory": ("mgpuMemAlloc",),
}


def _cache(run: Run, name: str) -> list[Content]:
    cache = run.statistics.caches.get(name)
    if cache is None or not (cache.hits or cache.misses):
        return [name, *[words.NONE] * 5]
    program = run.statistics.program
    asked = sum(program[f].calls for f in _SERVED.get(name, ()) if f in program)
    past = max(0, asked - cache.hits - cache.misses)
    rate = words.NONE if cache.rate is None else f"{100 * cache.rate:.1f} %"
    counts = map(words.count, (cache.hits, cache.misses, past))
    return [name, *counts, rate, words.count(cache.evictions)]


def _modules(run: Run) -> Iterator[Element]:
    modules = run.details.modules
    if modules is None:
        return
    heads = ["image", "bytes", "loads", "by the driver", "kernels", "why each time"]
    rows = [
        [
            code(module.image),
            words.count(module.bytes),
            words.count(module.loads),
            words.count(module.driver_loads),
            element(
                "span", ", ".join(module.kernels[:4]) + (" …" if len(module.kernels) > 4 else "")
            ),
            module.why or words.NONE,
        ]
        for module in sorted(modules, key=lambda module: -module.driver_loads)
    ]
    yield table("Modules", heads, rows, words=("kernels", "why each time"))


# ---- kernels and copies ----

_DIRECTIONS = {
    "to_device": "to the device",
    "from_device": "from the device",
    "on_device": "on the device",
    "unknown": "not known",
    "fill": "fills",
}


def kernels(runs: Sequence[Run]) -> list[Element]:
    """By kernel: statistics, else the trace's names; copies by direction."""
    counted = [_kernels_of(run) for run in runs]
    copied = [run.details.copies for run in runs]
    made: list[Element] = []
    if any(counted):
        made.append(_functions("Launches by kernel", [found or {} for found in counted], "kernel"))
    if any(copied):
        made.append(_copies(runs))
    if not made:
        words_ = f"{words.NONE} Neither is in these files."
        made.append(element("p", words_, class_="quiet"))
    return made


def _kernels_of(run: Run) -> dict[str, Counter] | None:
    if run.details.kernels is not None:
        return run.details.kernels
    return run.trace.kernels if run.trace else None


def _copies(runs: Sequence[Run]) -> Element:
    heads = ["direction"]
    for name in names(runs):
        heads += [f"calls {name}", f"bytes {name}"] if len(runs) == 2 else ["calls", "bytes"]
    rows = []
    for direction, told in _DIRECTIONS.items():
        found = [(run.details.copies or {}).get(direction) for run in runs]
        if any(copies and copies.calls for copies in found):
            cells = [
                cell
                for copies in found
                for cell in (
                    words.count(copies.calls if copies else None),
                    words.size(copies.bytes if copies else None),
                )
            ]
            rows.append([told, *cells])
    return table("Copies and fills", heads, rows)
