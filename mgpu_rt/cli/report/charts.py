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
    """A line of steps: `points[i]` is the value in the i-th step of the time axis."""

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
    """The axis has `steps` steps and is as long as `duration`; a curve with fewer points ends
    before it does."""
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
    """The line's path; a filled one goes back along the axis."""
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
