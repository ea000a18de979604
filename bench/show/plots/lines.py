"""Cost against launches, throughput against threads, and how latencies are distributed."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.figure import Figure

from bench.setup.sides import HOISTED, LAZY, OURS, WORDS
from bench.show.plots.style import COLOURS, Rows, legend_below


def growth(rows: Rows) -> Figure:
    """Lines: time since the process began against the number of launches."""
    figure, axes = pyplot.subplots(figsize=(7, 4.4), layout="constrained")
    for side in COLOURS:
        chosen = [row for row in rows if row["side"] == side]
        if chosen:
            counts, times = [r["launches"] for r in chosen], [r["ms"] for r in chosen]
            axes.plot(counts, times, "o-", ms=3, color=COLOURS[side], label=WORDS[side])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("launches (forum, LLVM 19)")
    axes.set_ylabel("ms since the process began")
    legend_below(figure, axes, 3)
    return figure


def threads(rows: Rows) -> Figure:
    """Lines: launches a second over the number of threads, and what perfect scaling would be."""
    figure, axes = pyplot.subplots(figsize=(7, 4.4), layout="constrained")
    words = {7: "mgpu_rt, LLVM 13 to 20", 5: "mgpu_rt, LLVM 21 to 24", 2: WORDS[HOISTED]}
    colours = {7: COLOURS[OURS], 5: COLOURS[LAZY], 2: COLOURS[HOISTED]}
    for loop, name in words.items():
        chosen = [row for row in rows if row["loop"] == loop]
        threads = [row["threads"] for row in chosen]
        axes.plot(threads, [r["per_second"] for r in chosen], "o-", color=colours[loop], label=name)
        first = chosen[0]["per_second"]
        axes.plot(threads, [first * n for n in threads], ":", lw=0.8, color=colours[loop])
    axes.set_xlabel("threads (dotted: the first thread's speed times their number)")
    axes.set_ylabel("million launches a second")
    axes.set_ylim(bottom=0)
    legend_below(figure, axes, 3)
    return figure


def latency(rows: Rows) -> Figure:
    """Distributions: the percentiles of both latencies, by side."""
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
    titles = {"start": "synchronise returns → kernel begins", "end": "kernel ends → returns"}
    for axes, (what, title) in zip(panels, titles.items(), strict=True):
        for row in (row for row in rows if row["what"] == what):
            axes.plot(row["us"], row["percentiles"], "o-", ms=2.5, label=row["side"])
        axes.set_title(title, loc="left")
        axes.set_xlabel("µs")
    panels[0].set_ylabel("percent of launches, at most")
    legend_below(figure, panels[0], 3)
    return figure
