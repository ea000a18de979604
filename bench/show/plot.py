"""Draws results: time by side, the calls behind it, cost against launches, threads, latency."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.setup.sides import ALONE, HOISTED, LAZY, LLVM, OURS, PLAIN, REWRITTEN, STOCK, WORDS

COLOURS = {
    STOCK: "#b2182b",
    LLVM: "#ef8a62",
    PLAIN: "#fddbc7",
    OURS: "#2166ac",
    ALONE: "#4393c3",
    LAZY: "#92c5de",
    REWRITTEN: "#999999",
    HOISTED: "#555555",
}
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.hashsalt": "mgpu_rt",  # the same file for the same figures
}

Rows = list[dict[str, Any]]


def draw(results: dict[str, Any], beside: Path) -> Iterator[Path]:
    """Writes <name>-<plot>.png and .svg beside the results' file; yields the paths."""
    date = results["date"][:10]
    with pyplot.rc_context(_STYLE):
        for key, benchmark in results["benchmarks"].items():
            plotter = _PLOTTERS.get(benchmark["name"])
            nothing_ran = benchmark["on"] == "stub" and benchmark["name"] != "threads"
            if plotter is None or nothing_ran or not benchmark["data"]:
                continue
            figure = plotter(benchmark["data"])
            figure.suptitle(f"{benchmark['device']}, {date}", fontsize=9, x=0.01, ha="left")
            figure.tight_layout()
            for suffix in ("png", "svg"):
                path = beside.with_name(f"{beside.stem}-{key}.{suffix}")
                # Without a date of its own, which would change with each drawing.
                metadata = {"Date": None} if suffix == "svg" else {"Software": None}
                figure.savefig(path, dpi=150, metadata=metadata)
                yield path
            pyplot.close(figure)


def _programs(rows: Rows) -> Figure:
    """Bars: time of a launch by program and side, one panel for each release."""
    releases = sorted({row["llvm"] for row in rows})
    figure, panels = pyplot.subplots(
        len(releases), 1, figsize=(9, 3.2 * len(releases)), sharex=True, squeeze=False
    )
    for axes, llvm in zip(panels[:, 0], releases, strict=True):
        chosen = [row for row in rows if row["llvm"] == llvm and row["side"] in COLOURS]
        programs = list(dict.fromkeys(row["program"] for row in chosen))
        sides = [side for side in COLOURS if any(row["side"] == side for row in chosen)]
        for number, side in enumerate(sides):
            _bars(axes, [row for row in chosen if row["side"] == side], programs, number, sides)
        axes.set_yscale("log")
        axes.set_ylabel("µs a launch")
        axes.set_title(f"LLVM {llvm}", loc="left")
        axes.set_xticks(range(len(programs)), programs)
    panels[-1, 0].legend(ncols=4, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    return figure


def _bars(axes: Axes, rows: Rows, programs: list[str], number: int, sides: list[str]) -> None:
    width = 0.8 / len(sides)
    places = [programs.index(row["program"]) - 0.4 + (number + 0.5) * width for row in rows]
    heights = [row["us"] / row["launches"] for row in rows]
    below = [(row["us"] - row["low"]) / row["launches"] for row in rows]
    above = [(row["high"] - row["us"]) / row["launches"] for row in rows]
    side = sides[number]
    axes.bar(
        places, heights, width, yerr=[below, above], color=COLOURS[side], label=WORDS[side],
        error_kw={"lw": 0.6},
    )  # fmt: skip


def _breakdown(rows: Rows) -> Figure:
    """Stacked bars: what the driver's calls take of an iteration, by function."""
    rows = [row for row in rows if row["layer"] == "driver"]
    bars = list(dict.fromkeys((row["program"], row["llvm"], row["side"]) for row in rows))
    functions = list(dict.fromkeys(row["function"] for row in rows))
    figure, axes = pyplot.subplots(figsize=(9, 4.2))
    colours = pyplot.get_cmap("tab20").colors  # type: ignore[attr-defined]
    left = [0.0] * len(bars)
    for number, function in enumerate(functions):
        widths = []
        for bar in bars:
            chosen = [row for row in rows if (row["program"], row["llvm"], row["side"]) == bar]
            launches = max(r["calls"] for r in chosen if r["function"] == "hipModuleLaunchKernel")
            widths.append(
                sum(r["us"] * r["calls"] for r in chosen if r["function"] == function) / launches
            )
        axes.barh(range(len(bars)), widths, left=left, label=function, color=colours[number % 20])
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(bars)), [f"{p}, LLVM {v}, {WORDS[s]}" for p, v, s in bars])
    axes.invert_yaxis()
    axes.set_xlabel("µs inside the driver's calls, an iteration")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _growth(rows: Rows) -> Figure:
    """Lines: time since the process began against the number of launches."""
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for side in COLOURS:
        chosen = [row for row in rows if row["side"] == side]
        if chosen:
            counts, times = [r["launches"] for r in chosen], [r["ms"] for r in chosen]
            axes.plot(counts, times, "o-", ms=3, color=COLOURS[side], label=WORDS[side])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("launches (forum, LLVM 19)")
    axes.set_ylabel("ms since the process began")
    axes.legend(frameon=False)
    return figure


def _threads(rows: Rows) -> Figure:
    """Lines: launches a second over the number of threads, and what perfect scaling would be."""
    figure, axes = pyplot.subplots(figsize=(6, 4))
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
    axes.legend(frameon=False)
    return figure


def _latency(rows: Rows) -> Figure:
    """Distributions: the percentiles of both latencies, by side."""
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    titles = {"start": "synchronise returns → kernel begins", "end": "kernel ends → returns"}
    for axes, (what, title) in zip(panels, titles.items(), strict=True):
        for row in (row for row in rows if row["what"] == what):
            axes.plot(row["us"], row["percentiles"], "o-", ms=2.5, label=row["side"])
        axes.set_title(title, loc="left")
        axes.set_xlabel("µs")
    panels[0].set_ylabel("percent of launches, at most")
    panels[0].legend(fontsize=7, frameon=False)
    return figure


_PLOTTERS: dict[str, Callable[[Rows], Figure]] = {
    "programs": _programs,
    "breakdown": _breakdown,
    "growth": _growth,
    "threads": _threads,
    "latency": _latency,
}
