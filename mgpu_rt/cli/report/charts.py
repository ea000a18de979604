"""Charts as SVG: placed in percent of the page's width, so that their text keeps its size.

Each has a title, which a screen reader says, and stands beside a table or a sentence with its
figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mgpu_rt.cli.report.markup import Content, Element, element

HEIGHT = 200  # of a plot over time, in CSS pixels
FRAME = 22  # below it, for the times
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


def key(colour: str, *words: Content) -> Element:
    """A colour and its meaning."""
    mark = element("span", class_=f"mark {colour}", aria_hidden="true")
    return element("span", mark, *words, class_="key")


# ---- parts of a whole ----


@dataclass(frozen=True)
class Part:
    """Of a bar."""

    name: str
    colour: str
    value: float
    words: str  # the value


def bar(title: str, parts: Iterable[Part], whole: float) -> Element:
    """Parts one after the other; `whole` is as long as the page is wide."""
    made, at = [], 0.0
    for part in parts:
        width = part.value / whole if whole else 0
        made.append(
            element(
                "rect",
                element("title", f"{part.name}: {part.words}"),
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
    """Two values on a logarithmic scale, and what lies between."""

    def place(value: float) -> float:
        room = math.log(high / low) if high > low else 1
        return 0.02 + 0.96 * math.log(value / low) / room

    marks: list[Element] = []
    if before and after:
        left, right = sorted((place(before), place(after)))
        line = {"x1": _percent(left), "x2": _percent(right), "y1": "50%", "y2": "50%"}
        marks.append(element("line", class_="between", **line))
    for value, colour in ((before, "before"), (after, "after")):
        if value:
            marks.append(element("circle", class_=colour, cx=_percent(place(value)), cy="50%", r=6))
    return _svg(title, 20, *marks, class_="span")


# ---- over time ----


@dataclass(frozen=True)
class Curve:
    """A line of steps: at `points[i]` is the value in the i-th part of the time axis."""

    colour: str
    points: Sequence[float]
    filled: bool = False


def over_time(
    title: str,
    curves: Sequence[Curve],
    duration: float,
    time: Callable[[float], str],
    value: Callable[[float], str],
) -> Element:
    """`duration` is that of the whole axis; a curve with fewer points ends before it does."""
    longest = max(len(curve.points) for curve in curves)
    highest = max(max(curve.points, default=0) for curve in curves) or 1
    steps = ticks(highest)
    top = steps[-1]
    drawn = [
        element(
            "path",
            class_=f"{curve.colour} {'area' if curve.filled else 'line'}",
            d=_steps(curve, longest, top),
        )
        for curve in curves
    ]
    plot = element(
        "svg",
        *drawn,
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveAspectRatio="none",
        y=14,
        width="100%",
        height=HEIGHT - 14,
    )
    return _svg(title, HEIGHT + FRAME, *_grid(steps, value), plot, *_times(duration, time))


def _steps(curve: Curve, longest: int, top: float) -> str:
    """The line's path; a filled one goes back along the axis."""
    parts, last = [], None
    for number, point in enumerate(curve.points):
        height = round(UNITS * (1 - point / top))
        if height != last:
            x = round(UNITS * number / longest)
            parts.append(f"M{x} {height}" if last is None else f"H{x}V{height}")
            last = height
    end = round(UNITS * len(curve.points) / longest)
    parts.append(f"H{end}")
    if curve.filled:
        parts.append(f"V{UNITS}H0Z")
    return "".join(parts)


def _grid(steps: Sequence[float], value: Callable[[float], str]) -> Iterable[Element]:
    for step in steps:
        y = 14 + (HEIGHT - 14) * (1 - step / steps[-1])
        yield element("line", class_="grid", x1="0", x2="100%", y1=f"{y:.1f}", y2=f"{y:.1f}")
        if step:
            yield element("text", value(step), class_="tick", x="0", y=f"{y - 4:.1f}")


def _times(duration: float, time: Callable[[float], str]) -> Iterable[Element]:
    for moment in ticks(duration):
        place = moment / duration
        if place <= 1:
            anchor = "start" if not moment else "end" if place > 0.95 else "middle"
            yield element(
                "text",
                time(moment) if moment else "0",
                class_="tick",
                x=_percent(place),
                y=HEIGHT + 17,
                text_anchor=anchor,
            )


def ticks(highest: float) -> list[float]:
    """Round numbers from 0 to the first that is no smaller."""
    rough = highest / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]
