"""Draws charts as SVG. Positions are percentages of the page's width, so the text of a chart keeps
its size.

Each chart has a title for screen readers. A table or a sentence beside the chart repeats the
chart's figures. Charts over time share a time axis, so a faster run's curve ends earlier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from mgpu_rt._cli.report.format import (
    NONE,
    Content,
    Element,
    code,
    count,
    duration,
    element,
    plural,
    size,
)
from mgpu_rt._cli.report.inputs import Level, Run, Trace, names

HEIGHT = 200  # height of a plot over time, in CSS pixels
HEAD, FOOT = 14, 22  # of it for the highest value, and below it for the times
UNITS = 1000  # of the scales that lines are drawn in


def _svg(title: str, height: int, *content: Content, class_: str = "plot") -> Element:
    return element(
        "svg",
        element("title", title),
        *content,
        role="img",
        class_=class_,
        width="100%",
        height=height,
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}%"


def key(colour: str, *meaning: Content) -> Element:
    """Draws an entry of the legend: a colour, and the meaning of the colour."""
    mark = element("span", class_=f"mark {colour}", aria_hidden="true")
    return element("span", mark, *meaning, class_="key")


# ---- parts of a whole ----


@dataclass(frozen=True)
class Part:
    """One part of a bar."""

    name: str
    colour: str
    value: float
    label: str  # the value


def bar(title: str, parts: Iterable[Part], whole: float) -> Element:
    """Draws the parts of a bar one after the other; a bar of length `whole` fills the page's
    width."""
    made, at = [], 0.0
    for part in parts:
        width = part.value / whole if whole else 0
        made.append(
            element(
                "rect",
                element("title", f"{part.name}: {part.label}"),
                class_=part.colour,
                x=_percent(at),
                width=_percent(width),
                height="100%",
            )
        )
        at += width
    return _svg(title, 28, *made, class_="bar")


# ---- before and after ----


def span(title: str, before: float | None, after: float | None, low: float, high: float) -> Element:
    """Draws two values as points on a logarithmic scale, and a line between the points."""

    def position(value: float) -> float:
        room = math.log(high / low) if high > low else 1
        return 0.02 + 0.96 * math.log(value / low) / room

    marks: list[Element] = []
    if before and after:
        left, right = sorted((position(before), position(after)))
        line = {"x1": _percent(left), "x2": _percent(right), "y1": "50%", "y2": "50%"}
        marks.append(element("line", class_="between", **line))
    for value, colour in ((before, "before"), (after, "after")):
        if value:
            marks.append(
                element("circle", class_=colour, cx=_percent(position(value)), cy="50%", r=6)
            )
    return _svg(title, 20, *marks, class_="span")


# ---- over time ----


@dataclass(frozen=True)
class Curve:
    """Draws a step curve: `points[i]` is the value in step i of the time axis."""

    colour: str
    points: Sequence[float]
    filled: bool = False


def over_time(
    title: str,
    curves: Sequence[Curve],
    steps: int,
    duration: float,
    time: Callable[[float], str],
    value: Callable[[float], str],
) -> Element:
    """Draws curves over a time axis that has `steps` steps and spans `duration`. A curve with fewer
    points ends before the end of the axis."""
    values = ticks(max(max(curve.points) for curve in curves) or 1)
    drawn = [
        element(
            "path",
            class_=f"{curve.colour} {'area' if curve.filled else 'line'}",
            d=_path(curve, steps, values[-1]),
        )
        for curve in curves
    ]
    plot = element(
        "svg",
        *drawn,
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveAspectRatio="none",
        y=HEAD,
        width="100%",
        height=HEIGHT - HEAD,
    )
    return _svg(title, HEIGHT + FOOT, *_grid(values, value), plot, *_times(duration, time))


def _path(curve: Curve, steps: int, top: float) -> str:
    """Returns the curve's path. The path of a filled curve also encloses the area between the curve
    and the time axis."""
    parts, last = [], None
    for number, point in enumerate(curve.points):
        height = round(UNITS * (1 - point / top))
        if height != last:
            x = round(UNITS * number / steps)
            parts.append(f"M{x} {height}" if last is None else f"H{x}V{height}")
            last = height
    end = round(UNITS * len(curve.points) / steps)
    parts.append(f"H{end}")
    if curve.filled:
        parts.append(f"V{UNITS}H0Z")
    return "".join(parts)


def _grid(values: Sequence[float], told: Callable[[float], str]) -> Iterable[Element]:
    for value in values:
        y = HEAD + (HEIGHT - HEAD) * (1 - value / values[-1])
        yield element("line", class_="grid", x1="0", x2="100%", y1=f"{y:.1f}", y2=f"{y:.1f}")
        if value:
            yield element("text", told(value), class_="tick", x="0", y=f"{y - 4:.1f}")


def _times(duration: float, time: Callable[[float], str]) -> Iterable[Element]:
    for moment in ticks(duration):
        position = moment / duration
        if position <= 1:
            anchor = "start" if not moment else "end" if position > 0.95 else "middle"
            yield element(
                "text",
                time(moment) if moment else "0",
                class_="tick",
                x=_percent(position),
                y=HEIGHT + 17,
                text_anchor=anchor,
            )


def ticks(highest: float) -> list[float]:
    """Returns round numbers at equal distances; the first number is 0, and the last number is at
    least `highest`."""
    rough = highest / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


# ---- a trace in as many steps as a chart can show ----

STEPS = 300


def step_count(duration: float, longest: float) -> int:
    """Returns the number of steps for a run of `duration`; the longest run has STEPS steps."""
    return max(1, round(STEPS * duration / longest))


def running_totals(
    moments: Iterable[float], begin: float, duration: float, steps: int
) -> list[int]:
    """Returns how many events had happened by the end of each step."""
    counts = [0] * steps
    for moment in moments:
        counts[_step_of(moment, begin, duration, steps)] += 1
    return list(accumulate(counts))


def memory_levels(
    memory: Sequence[Level], begin: float, duration: float, steps: int
) -> tuple[list[int], list[int]]:
    """Returns each step's highest levels: the memory that the program held, and this memory plus
    the cached memory."""
    held, kept = [0] * steps, [0] * steps
    last, now = 0, (0, 0)
    for level in memory:
        at = _step_of(level.moment, begin, duration, steps)
        for missed in range(last + 1, at + 1):  # nothing has changed in these steps
            held[missed], kept[missed] = now
        last, now = at, (level.allocated, level.allocated + level.cached)
        held[at], kept[at] = max(held[at], now[0]), max(kept[at], now[1])
    for missed in range(last + 1, steps):
        held[missed], kept[missed] = now
    return held, kept


def _step_of(moment: float, begin: float, duration: float, steps: int) -> int:
    step = int(steps * (moment - begin) / duration)
    return min(max(step, 0), steps - 1)


# ---- the charts over time: launches, objects that the driver made, memory ----

#: The driver's calls that create objects; a cache could have kept these objects.
MAKES = (
    "hipModuleLoadData",
    "hipModuleGetFunction",
    "hipStreamCreate",
    "hipEventCreateWithFlags",
    "hipMalloc",
    "hipMallocManaged",
)


def over_time_section(runs: Sequence[Run]) -> list[Element]:
    """Draws all charts, or explains why no chart can be drawn."""
    named = zip(names(runs), runs, strict=True)
    traces = {name: run.trace for name, run in named if run.trace}
    if not traces:
        how = code("mgpu-rt run --trace PATH -- PROGRAM")
        told = f"{NONE} No trace was given: "
        return [element("p", told, how, " writes one.", class_="quiet")]
    return [*_launches(traces), *_made_anew(traces), *_memory(traces)]


def _launches(traces: Mapping[str, Trace]) -> Iterator[Element]:
    moments = {
        name: _moments(
            calls.begins
            for function, calls in trace.program.items()
            if function.startswith("mgpuLaunch")
        )
        for name, trace in traces.items()
    }
    yield from _running_chart("Launches", ("launch", "launches"), traces, moments)


def _made_anew(traces: Mapping[str, Trace]) -> Iterator[Element]:
    moments = {
        name: _moments(trace.driver[make].begins for make in MAKES if make in trace.driver)
        for name, trace in traces.items()
    }
    things = ("object made by the driver", "objects made by the driver")
    title = "Modules, functions, streams, events and blocks the driver has made"
    yield from _running_chart(title, things, traces, moments)


def _lengths(traces: Mapping[str, Trace]) -> tuple[dict[str, float], float]:
    """Returns the length of each trace, and the greatest length, in microseconds. Each length is at
    least one nanosecond."""
    lengths = {name: max(trace.end - trace.begin, 0.001) for name, trace in traces.items()}
    return lengths, max(lengths.values())


def _moments(parts: Iterable[Iterable[float]]) -> list[float]:
    return list(chain.from_iterable(parts))


def _running_chart(
    title: str,
    things: tuple[str, str],
    traces: Mapping[str, Trace],
    moments: Mapping[str, Sequence[float]],
) -> Iterator[Element]:
    """Draws the number of events up to each time."""
    if not any(moments.values()):
        return
    lengths, longest = _lengths(traces)
    curves = [
        Curve(
            _colour(name),
            running_totals(
                moments[name],
                trace.begin,
                lengths[name],
                step_count(lengths[name], longest),
            ),
        )
        for name, trace in traces.items()
    ]
    told = "; ".join(
        f"{_lead(name)}{plural(len(moments[name]), *things)} in {_time(lengths[name])}"
        for name in traces
    )
    plot = over_time(title, curves, STEPS, longest, _time, _rounded)
    yield _figure(title, plot, [key(_colour(name), name) for name in traces], told)


def _memory(traces: Mapping[str, Trace]) -> Iterator[Element]:
    title = "Device memory"
    known = {name: trace for name, trace in traces.items() if trace.memory}
    if not known:
        told = f"{NONE} The trace holds nothing about it."
        yield element("figure", element("h3", title), element("figcaption", told))
        return
    lengths, longest = _lengths(traces)
    curves, keys, sentences = [], [], []
    for name, trace in known.items():
        steps = step_count(lengths[name], longest)
        held, kept = memory_levels(trace.memory, trace.begin, lengths[name], steps)
        colour = _colour(name)
        if kept != held:
            curves.append(Curve(f"{colour} kept", kept, filled=True))
            keys.append(key(f"{colour} kept", _lead(name), "with the blocks kept for reuse"))
        curves.append(Curve(colour, held))
        keys.append(key(colour, _lead(name), "held by the program"))
        sentences.append(
            f"{_lead(name)}at most {size(max(held))} held by the program, "
            f"{size(max(kept))} with the blocks kept for reuse"
        )
    plot = over_time(title, curves, STEPS, longest, _time, size)
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


def _rounded(number: float) -> str:
    return count(round(number))


def _time(microseconds: float) -> str:
    return duration(1000 * microseconds)
