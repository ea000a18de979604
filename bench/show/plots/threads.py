"""Draws throughput against threads."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.figure import Figure

from bench.setup.sides import HOISTED, LAZY, OURS, TITLES
from bench.show.plots.style import COLOURS, Rows, legend_below


def draw(rows: Rows) -> Figure:
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
