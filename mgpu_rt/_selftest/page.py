"""Builds a page for a browser from a selftest's findings, in the style of `mgpu-rt compare
--report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mgpu_rt._cli.report import Table, render
from mgpu_rt._selftest import summary
from mgpu_rt._selftest.fast import SIDES, by_side
from mgpu_rt._selftest.result import Result, Timing, Wrong

NONE = "–"


def document(result: Result) -> str:
    """Returns the page. Raises CommandError if jinja2 is missing."""
    device = result.device
    ended = f" It ended early: {result.ended}." if result.ended else ""
    parts = [
        [part.name, *map(str, (part.checked, part.total, part.compared, part.differ))]
        for part in result.right
    ]
    asked = [[name, f"{ns:.0f}"] for name, ns in result.questions.items()]
    return render(
        "selftest.html",
        Path(__file__).parent,
        title="selftest – mgpu_rt",
        heading=f"{device['name']} ({device['target']})",
        machine=f"HIP {device['hip']}, driver {device['driver']}; {result.processor}",
        verdict=summary.verdict(result),
        faults=[
            ("wrong", "What is wrong", _faults(result.wrong)),
            ("failed", "Faults that are not the library's", _faults(result.failed)),
        ],
        advice=result.advice,
        tables=[
            ("fast", "What is gained", _timings(result)),
            (
                "questions",
                "What each question to HIP costs",
                Table("Nanoseconds", ["question", "ns"], asked),
            ),
            (
                "checked",
                "What was checked",
                Table("Checks", ["part", "made", "of", "compared", "wrong"], parts),
            ),
        ],
        untimed=result.untimed,
        footer=f"Measured on {result.made} in {result.seconds:.0f} s by mgpu_rt "
        f"{result.mgpu_rt}.{ended}",
    )


def _faults(faults: Sequence[Wrong]) -> list[tuple[str, str, Sequence[str]]]:
    return [(summary.blamed(wrong), wrong.repeat, wrong.says) for wrong in faults]


def _timings(result: Result) -> Table:
    rows = []
    for (program, llvm), sides in by_side(result.fast).items():
        cells = [_median(sides[side]) if side in sides else NONE for side in SIDES]
        gain = f"{sides['stock'].us / sides['library'].us:.1f}"
        rows.append([f"{program}, LLVM {llvm}", *cells, gain])
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in summary.ITERATION.items())
    caption = "Medians, with half of the spread of the middle 80 %"
    note = f"An iteration of {meanings}."
    return Table(caption, ["µs an iteration", *SIDES, "gain"], rows, note=note)


def _median(timing: Timing) -> str:
    spread = (timing.high - timing.low) / 2 / timing.us
    return f"{summary.number(timing.us)} ± {spread:.0%}"
