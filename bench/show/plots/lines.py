"""Draws throughput against threads, and the distribution of latencies."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.figure import Figure

from bench.setup.sides import HOISTED, LAZY, LLVM, OURS, STOCK, TITLES
from bench.show.plots.style import COLOURS, Rows, legend_below


def threads(rows: Rows) -> Figure:
    """Draws lines: the launches per second of several threads as a multiple of the launches of one
    thread."""
    figure, axes = pyplot.subplots(figsize=(7, 4.4), layout="constrained")
    words = {
        7: ("LLVM 13 to 20", COLOURS[OURS], "o-"),
        5: ("LLVM 21 to 24", COLOURS[LAZY], "o-"),
        2: (TITLES[HOISTED], COLOURS[HOISTED], "o:"),
    }
    for loop, (name, colour, line) in words.items():
        chosen = [row for row in rows if row["loop"] == loop]
        counts = [row["threads"] for row in chosen]
        axes.plot(counts, [row["scaling"] for row in chosen], line, color=colour, label=name)
    axes.set_xlabel("threads")
    axes.set_ylabel("times the launches a second of one thread")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    legend_below(figure, axes, 3)
    most = max((row for row in rows if row["loop"] == 7), key=lambda row: row["threads"])
    figure.suptitle(f"{most['threads']} threads launch {most['scaling']:.0f} times as often as one")
    return figure


#: The lines of the plot of latencies: the side, the LLVM release (0 for the side by hand), and the
#: style of the line.
_LATENCIES = {
    (STOCK, 19): "-",
    (LLVM, 19): "-",
    (STOCK, 22): "--",
    (LLVM, 22): "--",
    (OURS, 19): "-",
    (OURS, 22): "--",
    (HOISTED, 0): "-",
}


def latency(rows: Rows) -> Figure:
    """Draws distributions: the percentiles of the delay before a kernel begins, by side."""
    figure, axes = pyplot.subplots(figsize=(9, 4.6), layout="constrained")
    taken = {row["side"]: row for row in rows if row["what"] == "start"}
    for (side, llvm), line in _LATENCIES.items():
        name = f"{TITLES[side]}, LLVM {llvm}" if llvm else TITLES[side]
        row = taken.get(name)
        if row:
            places = (row["us"], row["percentiles"])
            axes.plot(*places, f"o{line}", ms=3, color=COLOURS[side], label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("µs from a synchronise's return to the next kernel's begin, logarithmic")
    axes.set_ylabel("percent of launches, at most")
    axes.set_ylim(0, 100)
    legend_below(figure, axes, 3)
    figure.suptitle("The next kernel begins as soon as by hand")
    return figure
