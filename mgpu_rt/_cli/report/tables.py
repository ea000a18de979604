"""Builds the page's tables: calls, kernels and copies, caches and modules.

The tables stay readable on a phone, where each row becomes a block and each cell shows its column's
head. The ARIA roles tell screen readers the table structure, which a browser loses when rows are
laid out as blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mgpu_rt._cli.report.charts import key, span
from mgpu_rt._cli.report.format import (
    NONE,
    Content,
    Element,
    code,
    count,
    duration,
    element,
    hit_rate,
    per_call,
    size,
)
from mgpu_rt._cli.report.inputs import Calls, Run
from mgpu_rt._cli.stats.statistics import Copies, Counter
from mgpu_rt._cli.stats.tables import (
    PURPOSE,
    factor,
    pairs,
    questions,
    ratio,
    reasons,
    summed,
    work,
)

ROWS = 40  # one line counts the others; the most important rows come first


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Content]],
    *,
    total: Sequence[Content] | None = None,
    text_columns: Iterable[str] = (),
    pairs: bool = False,
) -> Element:
    """Creates a table; the first cell of a row names the row. `text_columns` are the heads of
    columns that contain text. With `pairs`, each column of values before is followed by the column
    of values after."""
    columns = [(head, "words" if head in text_columns else None) for head in heads]
    top = [
        element("th", head, scope="col", role="columnheader", class_=kind) for head, kind in columns
    ]
    every = list(rows)
    shown = [_row(row, columns) for row in every[:ROWS]]
    if len(every) > ROWS:
        rest = element("td", f"and {len(every) - ROWS:,} more", colspan=len(heads), role="cell")
        shown.append(element("tr", rest, role="row", class_="rest"))
    if total:
        shown.append(_row(total, columns, "total"))
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *top, role="row"), role="rowgroup"),
        element("tbody", *shown, role="rowgroup"),
        role="table",
        class_="pairs" if pairs else None,
    )


def _row(
    cells: Sequence[Content], columns: Sequence[tuple[str, str | None]], kind: str | None = None
) -> Element:
    made = []
    for number, (cell, (head, kind_of_column)) in enumerate(zip(cells, columns, strict=True)):
        if number == 0:
            made.append(element("th", cell, scope="row", role="rowheader"))
        else:
            made.append(element("td", cell, role="cell", class_=kind_of_column, data_head=head))
    return element("tr", *made, role="row", class_=kind)


# ---- calls, and the time of one call ----


def calls_section(runs: Sequence[Run]) -> list[Element]:
    """Shows the program's calls, the driver's calls, and the time per call."""
    layers = {
        "Calls of the program": [run.statistics.program for run in runs],
        "Calls of the driver": [work(run.statistics.driver) for run in runs],
    }
    made = [by_name(caption, counters) for caption, counters in layers.items()]
    made[1:1] = _each(runs)
    return [*made, *_questions(runs), *_reasons(runs), *_spread(runs[-1])]


def _questions(runs: Sequence[Run]) -> Iterator[Element]:
    asked = [questions(run.statistics.driver) for run in runs]
    if any(asked):
        yield by_name("Questions to the driver", asked)
        yield element("p", PURPOSE, class_="quiet")


def _reasons(runs: Sequence[Run]) -> Iterator[Element]:
    """Lists the functions that take longer in the second run for a known reason."""
    found = reasons(*(run.statistics for run in runs)) if len(runs) == 2 else {}
    if found:
        told = [element("li", code(name), f": {reason}") for name, reason in found.items()]
        yield element("h3", "Calls that take longer, and why")
        yield element("ul", *told, class_="sources")


def by_name(caption: str, layers: list[dict[str, Counter]], thing: str = "function") -> Element:
    """Creates a table of the counters of one or two runs, sorted by time, the longest first."""
    if len(layers) == 1:
        heads = [thing, "calls", "time", "per call"]
        ordered = sorted(layers[0].items(), key=lambda item: -item[1].ns)
        rows = [[code(name), *_counter_cells([counter])] for name, counter in ordered]
        return table(
            caption, heads, rows, total=["total", *_counter_cells([summed(layers[0])], False)]
        )
    heads = [thing, "calls before", "after", "time before", "after", "per call before", "after"]
    rows = [
        [code(name), *_counter_cells(pair), _marked_ratio(ratio(*pair))]
        for name, pair in pairs(*layers).items()
    ]
    both = (summed(layers[0]), summed(layers[1]))
    last = ["total", *_counter_cells(both, False), _marked_ratio(ratio(*both))]
    return table(caption, [*heads, "ratio"], rows, total=last, pairs=True)


def _counter_cells(counters: Sequence[Counter | None], each: bool = True) -> list[Content]:
    """Returns the number of calls, the total time, and the time of one call. If `each` is False,
    the cells for the time of one call stay empty, because the counter is a sum over functions."""
    return [
        *(count(counter.calls if counter else None) for counter in counters),
        *(duration(counter.ns if counter else None) for counter in counters),
        *(duration(per_call(counter)) if each else "" for counter in counters),
    ]


def _marked_ratio(value: float | None) -> Element:
    """Formats the ratio, in colour if it differs from 1 by at least 5 %. A smaller difference is
    noise."""
    kind = None
    if value is not None and not 0.95 <= value < 1.05:
        kind = "better" if value > 1 else "worse"
    return element("span", factor(value), class_=kind)


def _each(runs: Sequence[Run]) -> Iterator[Element]:
    """Draws each function's times before and after, on a logarithmic scale."""
    if len(runs) == 1:
        return
    found = pairs(*(run.statistics.program for run in runs))
    rows = {name: tuple(map(per_call, pair)) for name, pair in found.items()}
    values = [value for pair in rows.values() for value in pair if value]
    if not values:
        return
    low, high = min(values), max(values)
    items: list[Element] = []
    for name, (before, after) in rows.items():
        told = f"{name}: {duration(before)} before, {duration(after)} after"
        items.append(element("dt", code(name)))
        items.append(element("dd", span(told, before, after, low, high)))
    yield element(
        "figure",
        element("p", key("before", "before"), key("after", "after"), class_="legend"),
        element("dl", *items, class_="spans"),
        element(
            "figcaption",
            f"Time of one call, from {duration(low)} at the left to {duration(high)} at the "
            "right. Each step to the left is a fraction of the time, not a difference.",
        ),
    )


def _spread(run: Run) -> Iterator[Element]:
    """Shows the median and the longest times of calls from the trace, because a mean would hide
    long calls."""
    if run.trace is None:
        return
    longest = sorted(run.trace.program.items(), key=lambda item: -sum(item[1].durations))
    heads = ["function", "median", "99 of 100 within", "longest"]
    rows = [[code(name), *_quantiles(calls)] for name, calls in longest]
    yield table("Time of one call, by the trace", heads, rows)


def _quantiles(calls: Calls) -> Iterator[str]:
    durations = sorted(calls.durations)
    for percent in (50, 99, 100):
        yield duration(1000 * percentile(percent, durations))


def percentile(percent: int, ordered: Sequence[float]) -> float:
    """Returns the smallest value that is greater than or equal to `percent` % of the values."""
    return ordered[-(-percent * len(ordered) // 100) - 1]


# ---- launches by kernel, the time on the GPU, copies and fills by direction ----

_DIRECTIONS = {
    "to_device": "to the device",
    "from_device": "from the device",
    "on_device": "on the device",
    "unknown": "not known",
    "fill": "fills",
}


def kernels_section(runs: Sequence[Run]) -> list[Element]:
    """Shows tables of kernels and copies, if the files contain kernels and copies."""
    made: list[Element] = []
    kernels = [_kernels(run) for run in runs]
    if any(kernels):
        made.append(by_name("Launches by kernel", kernels, "kernel"))
    gpu = [run.trace.gpu if run.trace else {} for run in runs]
    if any(gpu):
        made.append(by_name("Time on the GPU", gpu, "work"))
    copies = [run.statistics.copies for run in runs]
    if any(copies):
        made.append(_copies(copies))
    if not made:
        told = f"{NONE} Neither is in these files."
        made.append(element("p", told, class_="quiet"))
    return made


def _kernels(run: Run) -> dict[str, Counter]:
    """Returns the kernels in the statistics, or in the trace if the statistics contain no
    kernels."""
    return run.statistics.kernels or (run.trace.kernels if run.trace else {})


def _copies(runs: Sequence[dict[str, Copies]]) -> Element:
    heads = ["calls before", "bytes before", "calls after", "bytes after"]
    rows = []
    for direction, told in _DIRECTIONS.items():
        found = [copies.get(direction) for copies in runs]
        if any(copies and copies.calls for copies in found):
            rows.append([told, *(cell for copies in found for cell in _copy_cells(copies))])
    heads = heads if len(runs) == 2 else ["calls", "bytes"]
    return table("Copies and fills", ["direction", *heads], rows)


def _copy_cells(copies: Copies | None) -> Iterator[str]:
    yield count(copies.calls if copies else None)
    yield size(copies.bytes if copies else None)


# ---- cache misses, and the reasons why modules are loaded again ----

KERNELS_NAMED = 4  # number of a module's kernels that are named

#: The program's calls that a cache serves.
_SERVED = {
    "modules": ("mgpuModuleLoad", "mgpuModuleLoadJIT"),
    "functions": ("mgpuModuleGetFunction",),
    "streams": ("mgpuStreamCreate",),
    "events": ("mgpuEventCreate",),
    "memory": ("mgpuMemAlloc",),
}


def caches_section(runs: Sequence[Run]) -> list[Element]:
    """Shows the caches and modules of the last run."""
    run = runs[-1]
    if not run.statistics.caches:
        told = f"{NONE} No statistics were given; only they count cache misses."
        return [element("p", told, class_="quiet")]
    made: list[Element] = []
    if run.is_stock:
        made.append(element("p", "No cache was in use in this run.", class_="quiet"))
    caption = "Caches" if len(runs) == 1 else "Caches, after"
    heads = ["cache", "hits", "misses", "passed on", "rate", "evicted"]
    rows = [_cache_row(run, name) for name in run.statistics.caches]
    made.append(table(caption, heads, rows))
    if graphs := run.statistics.graphs.summary:
        made.append(element("p", f"{graphs[0].upper()}{graphs[1:]}."))
    if memory := run.statistics.made.summary:
        made.append(element("p", f"{memory[0].upper()}{memory[1:]}."))
    return [*made, *_modules(run)]


def _cache_row(run: Run, name: str) -> list[Content]:
    cache = run.statistics.caches[name]
    if not (cache.hits or cache.misses):
        return [name, *[NONE] * 5]
    program = run.statistics.program
    served = _SERVED.get(name, ())
    asked = sum(program[f].calls for f in served if f in program)
    failed = sum(n for failure, n in run.statistics.failed.items() if failure.function in served)
    passed_on = max(0, asked - cache.hits - cache.misses - failed)
    counts = map(count, (cache.hits, cache.misses, passed_on))
    return [name, *counts, hit_rate(cache), count(cache.evictions)]


def _modules(run: Run) -> Iterator[Element]:
    if run.details.modules is None:
        return
    heads = ["image", "bytes", "loads", "by the driver", "kernels", "why each time"]
    rows = [
        [
            code(module.image),
            *map(count, (module.bytes, module.loads, module.driver_loads)),
            ", ".join(module.kernels[:KERNELS_NAMED])
            + (" …" if len(module.kernels) > KERNELS_NAMED else ""),
            module.why or NONE,
        ]
        for module in sorted(run.details.modules, key=lambda module: -module.driver_loads)
    ]
    yield table("Modules", heads, rows, text_columns=("kernels", "why each time"))
