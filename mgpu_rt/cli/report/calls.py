"""The tables of calls, by function or kernel, and how long one takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgpu_rt.cli.report import charts, words
from mgpu_rt.cli.report.markup import Content, Element, code, element
from mgpu_rt.cli.report.runs import Run
from mgpu_rt.cli.report.tables import table
from mgpu_rt.cli.report.trace import Calls
from mgpu_rt.cli.stats.comparison import pairs, ratio, summed
from mgpu_rt.cli.stats.driver_calls import PURPOSE, questions, work
from mgpu_rt.cli.stats.reasons import reasons
from mgpu_rt.cli.stats.statistics import Counter


def section(runs: Sequence[Run]) -> list[Element]:
    """The program's, the driver's, and how long one takes."""
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
    """What takes longer after, where the runs say why."""
    found = reasons(*(run.statistics for run in runs)) if len(runs) == 2 else {}
    if found:
        told = [element("li", code(name), f": {reason}") for name, reason in found.items()]
        yield element("h3", "What takes longer, and why")
        yield element("ul", *told, class_="sources")


def by_name(caption: str, layers: list[dict[str, Counter]], thing: str = "function") -> Element:
    """A table of one run's counters or of two, the longest first."""
    if len(layers) == 1:
        heads = [thing, "calls", "time", "per call"]
        ordered = sorted(layers[0].items(), key=lambda item: -item[1].ns)
        rows = [[code(name), *_cells([counter])] for name, counter in ordered]
        return table(caption, heads, rows, total=["total", *_cells([summed(layers[0])], False)])
    heads = [thing, "calls before", "after", "time before", "after", "per call before", "after"]
    rows = [
        [code(name), *_cells(pair), _factor(ratio(*pair))] for name, pair in pairs(*layers).items()
    ]
    both = (summed(layers[0]), summed(layers[1]))
    last = ["total", *_cells(both, False), _factor(ratio(*both))]
    return table(caption, [*heads, "ratio"], rows, total=last, pairs=True)


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
    longest = sorted(run.trace.program.items(), key=lambda item: -sum(item[1].durations))
    heads = ["function", "median", "99 of 100 within", "longest"]
    rows = [[code(name), *_quantiles(calls)] for name, calls in longest]
    yield table("Time of one call, by the trace", heads, rows)


def _quantiles(calls: Calls) -> Iterator[str]:
    durations = sorted(calls.durations)
    for percent in (50, 99, 100):
        yield words.time(1000 * within(percent, durations))


def within(percent: int, ordered: Sequence[float]) -> float:
    """The least of these values that so many of 100 are within."""
    return ordered[-(-percent * len(ordered) // 100) - 1]
