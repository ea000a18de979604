"""Draws the results of a run: models and graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from matplotlib import pyplot
from matplotlib.figure import Figure

from bench.show.plots import graphs, models
from bench.show.plots.style import STYLE, Rows

#: The function that draws a benchmark; it returns None if nothing can be drawn.
PLOTTERS: dict[str, Callable[[Rows], Figure | None]] = {
    "models": models.draw,
    "graphs": graphs.draw,
}


def draw(results: dict[str, Any], beside: Path) -> Iterator[Path]:
    """Writes <name>-<plot>.png beside the results' file; yields the paths."""
    for key, benchmark in results["benchmarks"].items():
        plotter = PLOTTERS.get(benchmark["name"])
        if plotter is None or benchmark["on"] == "stub" or not benchmark["data"]:
            continue
        words = f"{benchmark['device']}, {results['date'][:10]}"
        with pyplot.rc_context(STYLE):
            figure = plotter(benchmark["data"])
            if figure is None:
                continue
            headline = figure.get_suptitle()
            text, size = (f"{headline}\n{words}", 11) if headline else (words, 9)
            figure.suptitle(text, fontsize=size, x=0.01, ha="left")
            path = beside.with_name(f"{beside.stem}-{key}.png")
            figure.savefig(path, dpi=150, metadata={"Software": None})
            pyplot.close(figure)
            yield path
