"""The style of all plots: the sides' colours, the fonts, and the background.

The background is white even on a dark page, so a picture looks the same on light and dark pages.
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.setup.sides import (
    EXCLUSIVE,
    GRAPH,
    HAND_GRAPH,
    HOISTED,
    LAZY,
    LLVM,
    OURS,
    PLAIN,
    STOCK,
    TITLES,
)

Rows = list[dict[str, Any]]

#: Red marks sides that call the driver each time. Blue marks this library, green marks graphs, and
#: grey marks programs by hand.
COLOURS = {
    STOCK: "#b2182b",
    LLVM: "#ef8a62",
    PLAIN: "#fddbc7",
    OURS: "#2166ac",
    EXCLUSIVE: "#4393c3",
    LAZY: "#92c5de",
    HOISTED: "#555555",
    GRAPH: "#1b7837",
    HAND_GRAPH: "#a6dba0",
}
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.12,
}


def sides_of(rows: Rows) -> list[str]:
    """Returns the sides that occur in the data, in the order of the colours."""
    return [side for side in COLOURS if any(row.get("side") == side for row in rows)]


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Puts the legend below all panels, where the legend covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, ncols=columns, loc="outside lower center")


def log_scale(axes: Axes) -> None:
    """Draws a log scale of the values, labelled with whole numbers. A log scale has no zero, so the
    plot uses dots and not bars."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")


def grouped_dots(
    axes: Axes, groups: list[str], values: dict[str, list[tuple[float, float, float] | None]]
) -> None:
    """Draws a dot and an error bar for each side in each group, from the value and the errors below
    and above."""
    width = 0.7 / len(values)
    for number, (side, taken) in enumerate(values.items()):
        known = [(at, value) for at, value in enumerate(taken) if value is not None]
        axes.errorbar(
            [at - 0.35 + (number + 0.5) * width for at, _ in known],
            [value for _, (value, _, _) in known],
            yerr=[[below for _, (_, below, _) in known], [above for _, (_, _, above) in known]],
            fmt="o",
            markersize=4.5,
            elinewidth=0.6,
            color=COLOURS[side],
            label=TITLES[side],
        )
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(axis="x", visible=False)
