"""Draws README's picture: a model's pass with LLVM's own library, with this library, and as one
graph. The background is white even on a dark page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from bench.models.program import CHAIN, COPIED, WAITS
from bench.models.zoo import MODELS
from bench.setup.sides import GRAPH, HAND_GRAPH, HOISTED, LLVM, OURS, STOCK, TITLES

SHOWN = "block"
VARIANTS = {
    CHAIN.name: "one asynchronous chain",
    WAITS.name: "a wait after each kernel",
    COPIED.name: "everything copied\nin and out",
}
#: For each side with a bar, the hand-written side whose time a line on the bar marks.
BARS = {OURS: HOISTED, GRAPH: HAND_GRAPH}
HEIGHT = 0.27
BY_HAND = "#555555"
COLOURS = {STOCK: "#b2182b", LLVM: "#ef8a62", OURS: "#2166ac", GRAPH: "#1b7837"}
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "legend.frameon": False,
    "savefig.facecolor": "white",
}


def draw(results: dict[str, Any], beside: Path) -> Path | None:
    """Writes <name>-graphs-<device>.png beside the results' file, and returns its path. Returns
    None if the model was measured on no GPU.

    A panel for each release shows the model's variants, in percent of the time with LLVM's own
    library, or else with MGPU_RT_CACHE=off."""
    found = [one for one in results["benchmarks"].values() if one["name"] == "graphs"]
    for benchmark in found:
        rows = [row for row in benchmark["data"] if row["program"] == SHOWN]
        if rows:
            words = f"{benchmark['device']}, {results['date'][:10]}"
            path = beside.with_name(f"{beside.stem}-graphs-{benchmark['on']}.png")
            with pyplot.rc_context(STYLE):
                _draw({(r["variant"], r["llvm"], r["side"]): r["us"] for r in rows}, words, path)
            return path
    return None


def _draw(taken: dict[tuple[str, int, str], float], words: str, path: Path) -> None:
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
        axes.set_title(f"lowered by LLVM {llvm}", loc="left", fontsize=11)
        axes.set_xlim(0, 150)
        axes.set_xticks([0, 50, 100], ["0", "50 %", "100 %"])
        axes.tick_params(left=False)
        axes.spines["bottom"].set_bounds(0, 100)
    panels[0][0].set_yticks(range(len(VARIANTS)), list(VARIANTS.values()))
    panels[0][0].invert_yaxis()
    bars = (base, *BARS)
    handles: list[Artist] = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[side]) for side in bars]
    handles.append(pyplot.Line2D([], [], color=BY_HAND, lw=3))
    names = [*(TITLES[side] for side in bars), "by hand"]
    figure.legend(handles, names, ncols=4, loc="outside lower center")
    title = next(model.title for model in MODELS if model.name == SHOWN)
    headline = f"A {title}: unchanged about as fast as by hand, as one graph faster still\n{words}"
    figure.suptitle(headline, fontsize=11, x=0.01, ha="left")
    figure.savefig(path, dpi=150, metadata={"Software": None})
    pyplot.close(figure)


def _variant(axes: Axes, at: int, times: dict[str, float], base: str) -> None:
    for number, side in enumerate((base, *BARS)):
        if base not in times or side not in times:
            continue
        us, y = times[side], at + (number - 1) * HEIGHT
        percent, gain = 100 * us / times[base], times[base] / us
        axes.barh(y, percent, 0.9 * HEIGHT, color=COLOURS[side])
        end = percent
        if by_hand := times.get(BARS.get(side, "")):
            x = 100 * by_hand / times[base]
            axes.vlines(x, y - HEIGHT / 2, y + HEIGHT / 2, color=BY_HAND, lw=3)
            end = max(percent, x)
        text = f" {us:,.0f} µs" + (f": {gain:.1f} times as fast" if side != base else "")
        axes.text(end + 1, y, text, va="center", fontsize=9)
