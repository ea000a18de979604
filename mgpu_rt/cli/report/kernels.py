"""Launches by kernel, the time on the GPU, copies and fills by direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgpu_rt.cli.report import words
from mgpu_rt.cli.report.calls import by_name
from mgpu_rt.cli.report.markup import Element, element
from mgpu_rt.cli.report.runs import Run
from mgpu_rt.cli.report.tables import table
from mgpu_rt.cli.stats.statistics import Copies, Counter

_DIRECTIONS = {
    "to_device": "to the device",
    "from_device": "from the device",
    "on_device": "on the device",
    "unknown": "not known",
    "fill": "fills",
}


def section(runs: Sequence[Run]) -> list[Element]:
    """What the files have of them."""
    made: list[Element] = []
    kernels = [_kernels(run) for run in runs]
    if any(kernels):
        made.append(by_name("Launches by kernel", kernels, "kernel"))
    gpu = [run.trace.gpu if run.trace else {} for run in runs]
    if any(gpu):
        made.append(by_name("Time on the GPU", gpu, "work"))
    copies = [run.statistics.copies for run in runs]
    if any(copies):
        made.append(_copies(copies))
    if not made:
        told = f"{words.NONE} Neither is in these files."
        made.append(element("p", told, class_="quiet"))
    return made


def _kernels(run: Run) -> dict[str, Counter]:
    """By the statistics, else by the trace's names."""
    return run.statistics.kernels or (run.trace.kernels if run.trace else {})


def _copies(runs: Sequence[dict[str, Copies]]) -> Element:
    heads = ["calls before", "bytes before", "calls after", "bytes after"]
    rows = []
    for direction, told in _DIRECTIONS.items():
        found = [copies.get(direction) for copies in runs]
        if any(copies and copies.calls for copies in found):
            rows.append([told, *(cell for copies in found for cell in _cells(copies))])
    heads = heads if len(runs) == 2 else ["calls", "bytes"]
    return table("Copies and fills", ["direction", *heads], rows)


def _cells(copies: Copies | None) -> Iterator[str]:
    yield words.count(copies.calls if copies else None)
    yield words.size(copies.bytes if copies else None)
