"""Draws the time of a launch by program and side."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.setup.sides import EXCLUSIVE, HOISTED, LAZY, LLVM, OURS, STOCK
from bench.show.plots.style import Rows, grouped_dots, legend_below, log_scale, sides_of

SHOWN = (STOCK, LLVM, OURS, EXCLUSIVE, LAZY, HOISTED)


def draw(rows: Rows) -> Figure:
    """Draws a panel for each release."""
    rows = [row for row in rows if row.get("side") in SHOWN]
    releases = sorted({row["llvm"] for row in rows})
    figure, panels = pyplot.subplots(
        1, len(releases), figsize=(11, 4.8), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, llvm in zip(panels[0], releases, strict=True):
        _times(axes, [row for row in rows if row["llvm"] == llvm])
        axes.set_title(f"lowered by LLVM {llvm}", loc="left", fontsize=11)
    panels[0][0].set_ylabel("µs a launch, logarithmic")
    least, most = (f(row["us"] / row["launches"] for row in rows) for f in (min, max))
    panels[0][0].set_ylim(least / 2, 2 * most)
    legend_below(figure, panels[0][0], 3)
    figure.suptitle("A launch takes as long as by hand, unless the program registers memory")
    return figure


def _times(axes: Axes, rows: Rows) -> None:
    programs = list(dict.fromkeys(row["program"] for row in rows))
    taken = {(row["program"], row["side"]): row for row in rows}
    values = {
        side: [_value(taken.get((program, side))) for program in programs]
        for side in sides_of(rows)
    }
    words = {"vecadd": "vecadd\n(registers)", "spin": "spin\n(1.6 ms)"}
    grouped_dots(axes, [words.get(program, program) for program in programs], values)
    log_scale(axes)


def _value(row: dict | None) -> tuple[float, float, float] | None:
    if row is None:
        return None
    us, low, high = (row[key] / row["launches"] for key in ("us", "low", "high"))
    return us, us - low, high - us
