"""A model's pass as one graph, beside the same submitted call by call."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.models.program import CHAIN, COPIED, WAITS
from bench.models.zoo import MODELS
from bench.setup.sides import GRAPH, HAND_GRAPH, HOISTED, LLVM, OURS, STOCK, WORDS
from bench.show.plots.style import COLOURS, Rows, legend_below

SHOWN = "block"
VARIANTS = {
    CHAIN.name: "one asynchronous chain",
    WAITS.name: "a wait after each kernel",
    COPIED.name: "everything copied\nin and out",
}
#: A bar that is longer is cut, and says how long it is.
MOST_TIMES = 5.0


def draw(rows: Rows) -> Figure | None:
    """A panel for each release, the variants of one model in it; None if it was not measured."""
    taken = {(r["variant"], r["llvm"], r["side"]): r["us"] for r in rows if r["program"] == SHOWN}
    if not taken:
        return None
    releases = sorted({llvm for _, llvm, _ in taken})
    known = {side for _, _, side in taken}
    base = LLVM if LLVM in known else STOCK
    sides = [side for side in (base, OURS, HOISTED, GRAPH, HAND_GRAPH) if side in known]
    figure, panels = pyplot.subplots(
        1, len(releases), figsize=(11, 4.6), sharey=True, squeeze=False, layout="constrained"
    )
    by_hand = [us for (_, _, side), us in taken.items() if side == HOISTED]
    for axes, llvm in zip(panels[0], releases, strict=True):
        chosen = {(v, side): us for (v, release, side), us in taken.items() if release == llvm}
        _panel(axes, chosen, sides, MOST_TIMES * min(by_hand))
        axes.set_title(f"lowered by LLVM {llvm}", loc="left", fontsize=11)
    panels[0][0].set_yticks(range(len(VARIANTS)), list(VARIANTS.values()))
    panels[0][0].invert_yaxis()
    legend_below(figure, panels[0][0], 5)
    words = next(model.words for model in MODELS if model.name == SHOWN)
    figure.suptitle(f"A forward pass ({words}) in µs, submitted and as one graph")
    return figure


def _panel(axes: Axes, taken: dict[tuple[str, str], float], sides: list[str], most: float) -> None:
    height = 0.8 / len(sides)
    for number, side in enumerate(sides):
        for at, variant in enumerate(VARIANTS):
            us = taken.get((variant, side))
            if us is None:
                continue
            y = at - 0.4 + (number + 0.5) * height
            label = WORDS[side] if at == 0 else None
            axes.barh(y, min(us, most), 0.9 * height, color=COLOURS[side], label=label)
            weight = "bold" if side == GRAPH else "normal"
            text = f" {us:,.0f}" + (" →" if us > most else "")
            axes.text(min(us, most), y, text, va="center", fontsize=8, weight=weight)
    axes.set_xlim(0, 1.12 * most)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.tick_params(left=False)
    axes.spines[["bottom", "left"]].set_visible(False)
