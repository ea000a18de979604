"""Time of a launch by program and side, and beside it the ratio to the loop by hand."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.setup.sides import ALONE, DRIVER, HOISTED, OURS
from bench.show.plots.style import COLOURS, Rows, grouped_bars, legend_below, log_scale, sides_of

COMPARED = (OURS, ALONE, DRIVER)  # with the loop by hand
MOST = 2.0  # a ratio beyond is a number at the edge


def draw(rows: Rows) -> Figure:
    """A row of panels for each release."""
    releases = sorted({row["llvm"] for row in rows})
    figure, panels = pyplot.subplots(
        len(releases),
        2,
        figsize=(11, 3.1 * len(releases)),
        width_ratios=(2, 1),
        squeeze=False,
        layout="constrained",
    )
    for (times, ratios), llvm in zip(panels, releases, strict=True):
        chosen = [row for row in rows if row["llvm"] == llvm and row["side"] in COLOURS]
        _times(times, chosen)
        times.set_title(f"LLVM {llvm}", loc="left")
        _ratios(ratios, chosen)
    panels[0][1].set_title("as many times the loop by hand", loc="left")
    legend_below(figure, panels[0][0], 4)
    return figure


def _times(axes: Axes, rows: Rows) -> None:
    programs = list(dict.fromkeys(row["program"] for row in rows))
    taken = {(row["program"], row["side"]): row for row in rows}
    values = {
        side: [_value(taken.get((program, side))) for program in programs]
        for side in sides_of(rows)
    }
    grouped_bars(axes, programs, values)
    log_scale(axes)
    axes.set_ylabel("µs a launch")


def _value(row: dict | None) -> tuple[float, float, float] | None:
    if row is None:
        return None
    us, low, high = (row[key] / row["launches"] for key in ("us", "low", "high"))
    return us, us - low, high - us


def _ratios(axes: Axes, rows: Rows) -> None:
    taken = {(row["program"], row["side"]): row["us"] for row in rows}
    programs = [p for p in dict.fromkeys(row["program"] for row in rows) if (p, HOISTED) in taken]
    places = {
        side: number for number, side in enumerate(s for s in COMPARED if s in sides_of(rows))
    }
    height = 0.8 / len(places)
    for at, program in enumerate(programs):
        for side, number in places.items():
            if (program, side) not in taken:
                continue
            ratio = taken[program, side] / taken[program, HOISTED]
            y = at - 0.4 + (number + 0.5) * height
            axes.barh(y, min(ratio, MOST), height, color=COLOURS[side])
            beside = min(max(ratio, 1), MOST) + 0.02
            axes.text(beside, y, f"{ratio:#.3g}", va="center", fontsize=7)
    axes.axvline(1, color=COLOURS[HOISTED], lw=1)
    axes.set_xlim(0, 1.15 * MOST)
    axes.set_yticks(range(len(programs)), programs)
    axes.grid(axis="y", visible=False)
    axes.invert_yaxis()
