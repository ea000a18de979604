"""The charts over time, from the traces: launches, what the driver made anew, memory.

Runs share the axis of time, so that a faster one ends earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from mgpu_rt.cli.report import bins, charts, words
from mgpu_rt.cli.report.markup import Content, Element, code, element
from mgpu_rt.cli.report.runs import Run, names
from mgpu_rt.cli.report.trace import Trace

#: The driver's calls that make what a cache could have kept.
MAKES = (
    "hipModuleLoadData",
    "hipModuleGetFunction",
    "hipStreamCreate",
    "hipEventCreateWithFlags",
    "hipMalloc",
    "hipMallocManaged",
)


def section(runs: Sequence[Run]) -> list[Element]:
    """All charts, or why there are none."""
    named = zip(names(runs), runs, strict=True)
    traces = {name: run.trace for name, run in named if run.trace}
    if not traces:
        how = code("mgpu-rt run --trace PATH -- PROGRAM")
        told = f"{words.NONE} No trace was given: "
        return [element("p", told, how, " writes one.", class_="quiet")]
    return [*_launches(traces), *_made(traces), *_memory(traces)]


def _launches(traces: Mapping[str, Trace]) -> Iterator[Element]:
    moments = {
        name: _moments(
            calls.begins
            for function, calls in trace.program.items()
            if function.startswith("mgpuLaunch")
        )
        for name, trace in traces.items()
    }
    yield from _happened("Launches", ("launch", "launches"), traces, moments)


def _made(traces: Mapping[str, Trace]) -> Iterator[Element]:
    moments = {
        name: _moments(trace.driver[make].begins for make in MAKES if make in trace.driver)
        for name, trace in traces.items()
    }
    things = ("object made by the driver", "objects made by the driver")
    title = "Modules, functions, streams, events and blocks the driver has made"
    yield from _happened(title, things, traces, moments)


def _lengths(traces: Mapping[str, Trace]) -> tuple[dict[str, float], float]:
    """Of each and of the longest, in microseconds; a clock has told no less than its step."""
    lengths = {name: max(trace.end - trace.begin, 0.001) for name, trace in traces.items()}
    return lengths, max(lengths.values())


def _moments(parts: Iterable[Iterable[float]]) -> list[float]:
    return list(chain.from_iterable(parts))


def _happened(
    title: str,
    things: tuple[str, str],
    traces: Mapping[str, Trace],
    moments: Mapping[str, Sequence[float]],
) -> Iterator[Element]:
    """How much has happened at each time."""
    if not any(moments.values()):
        return
    lengths, longest = _lengths(traces)
    curves = [
        charts.Curve(
            _colour(name),
            bins.sums(
                moments[name],
                trace.begin,
                lengths[name],
                bins.places(lengths[name], longest),
            ),
        )
        for name, trace in traces.items()
    ]
    told = "; ".join(
        f"{_lead(name)}{words.plural(len(moments[name]), *things)} in {_time(lengths[name])}"
        for name in traces
    )
    plot = charts.over_time(title, curves, bins.BINS, longest, _time, _count)
    yield _figure(title, plot, [charts.key(_colour(name), name) for name in traces], told)


def _memory(traces: Mapping[str, Trace]) -> Iterator[Element]:
    title = "Device memory"
    known = {name: trace for name, trace in traces.items() if trace.memory}
    if not known:
        told = f"{words.NONE} The trace holds nothing about it."
        yield element("figure", element("h3", title), element("figcaption", told))
        return
    lengths, longest = _lengths(traces)
    curves, keys, sentences = [], [], []
    for name, trace in known.items():
        places = bins.places(lengths[name], longest)
        held, kept = bins.levels(trace.memory, trace.begin, lengths[name], places)
        colour = _colour(name)
        if kept != held:
            curves.append(charts.Curve(f"{colour} kept", kept, filled=True))
            keys.append(charts.key(f"{colour} kept", _lead(name), "with what is kept for reuse"))
        curves.append(charts.Curve(colour, held))
        keys.append(charts.key(colour, _lead(name), "held by the program"))
        sentences.append(
            f"{_lead(name)}at most {words.size(max(held))} held by the program, "
            f"{words.size(max(kept))} with what is kept"
        )
    plot = charts.over_time(title, curves, bins.BINS, longest, _time, words.size)
    yield _figure(title, plot, keys, "; ".join(sentences))


def _figure(title: str, plot: Element, keys: Sequence[Content], told: str) -> Element:
    heading = element("h3", title)
    legend = element("p", *keys, class_="legend") if len(keys) > 1 else None
    caption = element("figcaption", told[0].upper() + told[1:] + ".")
    return element("figure", heading, legend, plot, caption)


def _colour(name: str) -> str:
    return "before" if name == "before" else "after"


def _lead(name: str) -> str:
    return f"{name}: " if name in ("before", "after") else ""


def _count(number: float) -> str:
    return words.count(round(number))


def _time(microseconds: float) -> str:
    return words.time(1000 * microseconds)
