"""What the driver's calls take of an iteration, and what is paid once."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.measure.breakdown import START
from bench.setup.sides import WORDS
from bench.show.plots.style import Rows, legend_below
from bench.show.table import number

#: The driver's functions by what they are for; what is in none is a question.
KINDS = {
    "loading modules": ("hipModuleLoadData", "hipModuleLoadDataEx", "hipModuleUnload"),
    "looking up functions": ("hipModuleGetFunction",),
    "creating and destroying streams": (
        "hipStreamCreate",
        "hipStreamCreateWithFlags",
        "hipStreamDestroy",
    ),
    "allocating and freeing": ("hipMalloc", "hipFree", "hipHostMalloc", "hipHostFree"),
    "copying": ("hipMemcpyAsync", "hipMemcpy"),
    "launching": ("hipModuleLaunchKernel",),
    "waiting": ("hipStreamSynchronize", "hipDeviceSynchronize"),
    "asking": (),
    START: (START,),
}
COLOURS = (
    "#1f77b4",
    "#9ecae1",
    "#2ca02c",
    "#9467bd",
    "#c49c94",
    "#ffbb78",
    "#d62728",
    "#7f7f7f",
    "#dddddd",
)


def draw(rows: Rows) -> Figure:
    """An iteration, and what is paid once. Not the latter of older results: in those a part of
    HIP's start was in the calls of one side alone."""
    known = any(row["layer"] == "start" for row in rows)
    rows = [row for row in rows if row["layer"] in ("driver", "start")]
    bars = list(dict.fromkeys((row["program"], row["llvm"], row["side"]) for row in rows))
    figure, panels = pyplot.subplots(
        1,
        1 + known,
        figsize=(11, 4.6),
        width_ratios=(2, 1)[: 1 + known],
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    steady, *others = panels[0]
    _stack(steady, rows, bars, [row["us"] * row["calls"] / row["iterations"] for row in rows])
    steady.set_yticks(range(len(bars)), [f"{p}, LLVM {v}, {WORDS[s]}" for p, v, s in bars])
    steady.invert_yaxis()
    steady.set_title("µs inside the driver's calls, each iteration", loc="left", fontsize=10)
    for once in others:
        _stack(once, rows, bars, [row["once_ms"] for row in rows])
        once.set_title("ms paid once", loc="left", fontsize=10)
    legend_below(figure, steady, 4)
    return figure


def _stack(axes: Axes, rows: Rows, bars: list[tuple], widths: list[float]) -> None:
    left = [0.0] * len(bars)
    for kind, colour in zip(KINDS, COLOURS, strict=True):
        added = [
            sum(
                width
                for row, width in zip(rows, widths, strict=True)
                if _kind(row["function"]) == kind
                and (row["program"], row["llvm"], row["side"]) == bar
            )
            for bar in bars
        ]
        axes.barh(range(len(bars)), added, left=left, label=kind, color=colour)
        left = [a + b for a, b in zip(left, added, strict=True)]
    for at, total in enumerate(left):
        axes.text(total, at, f" {number(total)}", va="center", fontsize=8)
    axes.set_xlim(0, 1.15 * max(left))
    axes.grid(axis="y", visible=False)


def _kind(function: str) -> str:
    return next((kind for kind, names in KINDS.items() if function in names), "asking")
