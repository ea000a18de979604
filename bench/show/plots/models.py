"""A forward pass of each model in each variant; and what one gains, for the first page."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.models.program import VARIANTS
from bench.models.zoo import MODELS
from bench.setup.sides import HOISTED, LLVM, OURS, STOCK, WORDS
from bench.show.plots.style import COLOURS, Rows, grouped_bars, legend_below, log_scale, sides_of

#: What the first page shows: one model, in every variant that it was measured in.
SHOWN = "block"
SHOWN_AS = {
    "chain": "one asynchronous chain",
    "waits": "a wait after each kernel",
    "copied": "everything copied in and out",
    "registered": "host memory registered each time",
    "shared": "memory shared with the host",
}


def draw(rows: Rows) -> Figure:
    """A row of panels for each release, a panel for each variant."""
    rows = [row for row in rows if "us" in row]
    releases = sorted({row["llvm"] for row in rows})
    names = {row["variant"] for row in rows}
    variants = [variant for variant in VARIANTS if variant.name in names]
    figure, panels = pyplot.subplots(
        len(releases),
        len(variants),
        figsize=(12, 2.9 * len(releases)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for line, llvm in zip(panels, releases, strict=True):
        for axes, variant in zip(line, variants, strict=True):
            chosen = [r for r in rows if (r["llvm"], r["variant"]) == (llvm, variant.name)]
            _variant(axes, chosen)
        line[0].set_ylabel(f"LLVM {llvm}: µs a pass")
    for axes, variant in zip(panels[0], variants, strict=True):
        axes.set_title(variant.name, loc="left")
    panels[0][0].set_ylim(min(row["low"] for row in rows) / 2, max(row["high"] for row in rows))
    legend_below(figure, panels[0][0], 5)
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
    grouped_bars(axes, models, values)
    log_scale(axes)
    axes.tick_params(axis="x", rotation=35)


def draw_gain(rows: Rows) -> Figure | None:
    """Each pair to its own scale: the longer bar is what LLVM's own library takes. A mark is what
    the program takes by hand."""
    rows = [row for row in rows if "us" in row and row["model"] == SHOWN]
    base = LLVM if any(row["side"] == LLVM for row in rows) else STOCK
    taken = {(row["variant"], row["llvm"], row["side"]): row["us"] for row in rows}
    releases = sorted({row["llvm"] for row in rows}, reverse=True)
    variants = [
        variant
        for variant in SHOWN_AS
        if all((variant, llvm, side) in taken for llvm in releases for side in (base, OURS))
    ]
    if not variants:
        return None
    height = 1.3 + 0.68 * len(variants)
    figure, panels = pyplot.subplots(
        1, len(releases), figsize=(11, height), sharey=True, layout="constrained"
    )
    for axes, llvm in zip(panels, releases, strict=True):
        for at, variant in enumerate(variants):
            before, after = (taken[variant, llvm, side] for side in (base, OURS))
            _pair(axes, at, before, after, COLOURS[base])
            if by_hand := taken.get((variant, llvm, HOISTED)):
                axes.vlines(by_hand / before, at - 0.02, at + 0.4, color=COLOURS[HOISTED], lw=3)
        axes.set_title(f"lowered by LLVM {llvm}", loc="left", fontsize=11)
        axes.set_xlim(0, 1.5)
        axes.set_xticks([])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(left=False)
        axes.grid(visible=False)
    panels[0].set_yticks(range(len(variants)), [SHOWN_AS[variant] for variant in variants])
    panels[0].invert_yaxis()
    bars: list[Artist] = [
        pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[side]) for side in (base, OURS)
    ]
    words = [WORDS[base], "this library"]
    if any(side == HOISTED for _, _, side in taken):
        bars.append(pyplot.Line2D([], [], color=COLOURS[HOISTED], lw=3))
        words.append("by hand: all that can be kept is kept, nothing is checked")
    figure.legend(bars, words, ncols=3, loc="outside lower center")
    model = next(model for model in MODELS if model.name == SHOWN)
    figure.suptitle(f"A forward pass ({model.words}): the shorter the bar, the faster")
    return figure


def _pair(axes: Axes, at: int, before: float, after: float, colour: str) -> None:
    axes.barh(at - 0.19, 1, 0.34, color=colour)
    axes.barh(at + 0.19, after / before, 0.34, color=COLOURS[OURS])
    axes.text(1.02, at - 0.19, f"{before:,.0f} µs", va="center")
    gain = f"{before / after:.1f} times as fast" if before > 1.05 * after else "as fast"
    axes.text(
        after / before + 0.02, at + 0.19, f"{after:,.0f} µs: {gain}", va="center", weight="bold"
    )
