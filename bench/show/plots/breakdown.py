"""Draws the share of the driver's calls in an iteration."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.setup.sides import TITLES
from bench.show.plots.style import Rows, legend_below
from bench.show.table import number

#: The driver's functions by purpose; all functions that this table lacks are queries.
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
}
#: The library removes the red and yellow parts; blue remains, because the GPU must get work and the
#: host must wait for this work.
COLOURS = (
    "#b2182b",
    "#d6604d",
    "#f4a582",
    "#fee090",
    "#92c5de",
    "#4393c3",
    "#2166ac",
    "#777777",
)


def draw(rows: Rows) -> Figure:
    """Draws the time of an iteration as a bar, for each program, release and side. No bar includes
    HIP's start."""
    rows = [row for row in rows if row["layer"] == "driver"]
    bars = list(dict.fromkeys((row["program"], row["llvm"], row["side"]) for row in rows))
    figure, axes = pyplot.subplots(figsize=(11, 4.6), layout="constrained")
    _stack(axes, rows, bars, [row["us"] * row["calls"] / row["iterations"] for row in rows])
    axes.set_yticks(range(len(bars)), [f"{p}, LLVM {v}, {TITLES[s]}" for p, v, s in bars])
    axes.invert_yaxis()
    axes.set_xlabel("µs inside the driver's calls, each iteration")
    legend_below(figure, axes, 4)
    figure.suptitle("The driver still copies, launches and waits; the rest goes away")
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
