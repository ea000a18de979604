"""Draws the time of a forward pass of each model in each variant."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.models.program import VARIANTS
from bench.models.zoo import MODELS
from bench.setup.sides import HOISTED, LAZY, LLVM, OURS
from bench.show.plots.style import Rows, grouped_dots, legend_below, log_scale, sides_of

SHOWN = (LLVM, OURS, LAZY, HOISTED)


def draw(rows: Rows) -> Figure:
    """Draws a row of panels for each release, with a panel for each variant."""
    rows = [row for row in rows if "us" in row and row["side"] in SHOWN]
    releases = sorted({row["llvm"] for row in rows})
    names = {row["variant"] for row in rows}
    variants = [variant for variant in VARIANTS if variant.name in names]
    figure, panels = pyplot.subplots(
        len(releases),
        len(variants),
        figsize=(12, 3.2 * len(releases)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for line, llvm in zip(panels, releases, strict=True):
        for axes, variant in zip(line, variants, strict=True):
            chosen = [r for r in rows if (r["llvm"], r["variant"]) == (llvm, variant.name)]
            _variant(axes, chosen)
        line[0].set_ylabel(f"LLVM {llvm}: µs a pass, logarithmic")
    for axes, variant in zip(panels[0], variants, strict=True):
        axes.set_title(variant.name, loc="left")
    panels[0][0].set_ylim(min(row["low"] for row in rows) / 2, 2 * max(row["high"] for row in rows))
    legend_below(figure, panels[0][0], 5)
    figure.suptitle(
        "A forward pass takes as long as by hand, with one word also where it registers memory"
    )
    return figure


def _variant(axes: Axes, rows: Rows) -> None:
    taken = {(row["model"], row["side"]): row for row in rows}
    models = [model.name for model in MODELS if any(name == model.name for name, _ in taken)]
    values = {
        side: [
            (row["us"], row["us"] - row["low"], row["high"] - row["us"])
            if (row := taken.get((model, side)))
            else None
            for model in models
        ]
        for side in sides_of(rows)
    }
    grouped_dots(axes, models, values)
    log_scale(axes)
    axes.tick_params(axis="x", rotation=35)
