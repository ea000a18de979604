"""Draws the time of a model's pass with LLVM's own library, with this library, and as one graph.
The README shows this plot."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.models.program import CHAIN, COPIED, WAITS
from bench.models.zoo import MODELS
from bench.setup.sides import GRAPH, HAND_GRAPH, HOISTED, LLVM, OURS, STOCK, TITLES
from bench.show.plots.style import COLOURS, Rows

SHOWN = "block"
VARIANTS = {
    CHAIN.name: "one asynchronous chain",
    WAITS.name: "a wait after each kernel",
    COPIED.name: "everything copied\nin and out",
}
#: For each side with a bar, the hand-written side whose time a line on the bar marks.
BARS = {OURS: HOISTED, GRAPH: HAND_GRAPH}
HEIGHT = 0.27


def draw(rows: Rows) -> Figure | None:
    """Draws a panel for each release. A panel shows one model's variants, in percent of the time
    with LLVM's own library. If LLVM's own library was not measured, the time with MGPU_RT_CACHE=off
    is 100 percent. Returns None if the model was not measured."""
    taken = {(r["variant"], r["llvm"], r["side"]): r["us"] for r in rows if r["program"] == SHOWN}
    if not taken:
        return None
    releases = sorted({llvm for _, llvm, _ in taken}, reverse=True)
    base = LLVM if any(side == LLVM for _, _, side in taken) else STOCK
    figure, panels = pyplot.subplots(
        1, len(releases), figsize=(11, 5), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, llvm in zip(panels[0], releases, strict=True):
        for at, variant in enumerate(VARIANTS):
            times = {side: us for (v, of, side), us in taken.items() if (v, of) == (variant, llvm)}
            _variant(axes, at, times, base)
        axes.set_xlabel(f"percent of the time with {TITLES[base]}", loc="left")
        _finish(axes, f"lowered by LLVM {llvm}")
    panels[0][0].set_yticks(range(len(VARIANTS)), list(VARIANTS.values()))
    panels[0][0].invert_yaxis()
    _legend(figure, base)
    words = next(model.title for model in MODELS if model.name == SHOWN)
    figure.suptitle(f"A {words}: unchanged as fast as by hand, as one graph faster still")
    return figure


def _variant(axes: Axes, at: int, times: dict[str, float], base: str) -> None:
    if base not in times:
        return
    for number, side in enumerate((base, *BARS)):
        us, y = times.get(side), at + (number - 1) * HEIGHT
        if us is None:
            continue
        percent, gain = 100 * us / times[base], times[base] / us
        axes.barh(y, percent, 0.9 * HEIGHT, color=COLOURS[side])
        end, by_hand = percent, times.get(BARS.get(side, ""))
        if by_hand:
            x = 100 * by_hand / times[base]
            axes.vlines(x, y - HEIGHT / 2, y + HEIGHT / 2, color=COLOURS[HOISTED], lw=3)
            end = max(percent, x)
        text = f" {us:,.0f} µs" + (f": {gain:.1f} times as fast" if side != base else "")
        axes.text(end + 1, y, text, va="center", fontsize=9)


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlim(0, 150)
    axes.set_xticks([0, 50, 100], ["0", "50 %", "100 %"])
    axes.grid(visible=False)
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, 100)


def _legend(figure: Figure, base: str) -> None:
    handles: list[Artist] = [
        pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[side]) for side in (base, *BARS)
    ]
    handles.append(pyplot.Line2D([], [], color=COLOURS[HOISTED], lw=3))
    words = [*(TITLES[side] for side in (base, *BARS)), "by hand"]
    figure.legend(handles, words, ncols=4, loc="outside lower center")
