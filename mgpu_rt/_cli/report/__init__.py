"""Implements `mgpu-rt compare --report`: one HTML page about one run or several runs, without
scripts.

This file computes the page's texts and bars. page.html lays them out with the tables of
`mgpu-rt compare`, and advice.py finds the advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mgpu_rt import __version__
from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.report.advice import advice, plural, untimed
from mgpu_rt._cli.stats import tables
from mgpu_rt._cli.stats.statistics import Statistics, devices, total, warning
from mgpu_rt._cli.stats.tables import Side
from mgpu_rt._packages import need
from mgpu_rt._text import NONE, duration, printable, shortened

SENTENCE = 600  # letters of a text on the page


def write(out: str, sides: Sequence[Side], notes: Sequence[str] = ()) -> None:
    """Writes the page; - means stdout. `notes` are further sentences below the first one. Raises
    CommandError."""
    text = document(sides, notes)
    if out == "-":
        print(text, end="")
    else:
        files.write(out, text.encode())


def document(sides: Sequence[Side], notes: Sequence[str] = ()) -> str:
    last = sides[-1]
    program = last.run.processes[0].program if last.run.processes else Path(last.source).stem
    return _render(
        program=shortened(program),
        failures=[f"{s.name}: {'; '.join(s.run.failures)}." for s in sides if s.run.failed],
        warning=warning(side.run for side in sides),
        outcome=_outcome(sides),
        quiet=[*(f"On {d.description}." for d in devices(s.run for s in sides)), *notes],
        bars=_bars(sides),
        advice=advice(last.run),
        untimed=untimed(last.run),
        notes=[*tables.other_calls(sides), *tables.notes(sides)],
        is_stock=last.run.is_stock,
        calls=[*tables.calls(sides)],
        missed=[tables.caches([last]), *tables.modules(last.run)],
        copies=[*tables.copies(sides)],
        sources=[f"{side.name}: {shortened(side.source)}" for side in sides],
        version=__version__,
        uncounted=NONE,
    )


def check() -> None:
    """Raises CommandError if jinja2 is missing."""
    try:
        need("a page", jinja2="jinja2")
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from None


def _render(**values: Any) -> str:
    """Fills in page.html. Text from files never becomes markup, and its unprintable characters
    become escapes. Raises CommandError if jinja2 is missing."""
    check()
    import jinja2

    def safe(value: Any) -> Any:
        is_text = isinstance(value, str) and not hasattr(value, "__html__")
        return shortened(printable(value), SENTENCE) if is_text else value

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    form = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(autoescape=True, finalize=safe, loader=loader, **form)
    return environment.get_template("page.html").render(**values)


def _outcome(sides: Sequence[Side]) -> str:
    """Returns the page's first sentence. Notes and ratios name a gain."""
    sums = [total(side.run.program.values()) for side in sides]
    if len(sides) == 1:
        calls = plural(sums[0].calls, "call")
        time = f"{duration(sums[0].ns)}{_without_graphs(sides[0])}"
        return f"The program's {calls} to MLIR's GPU runtime took {time}."
    if reason := tables.incomparable(side.run for side in sides):
        return reason
    times = (f"{duration(one.ns)} {side.name}" for one, side in zip(sums, sides, strict=True))
    sums = max((tables.summed_over(side.run) for side in sides), key=len)
    return f"The program's calls took {' and '.join(times)}{sums}."


def _without_graphs(side: Side) -> str:
    return ", without launches of graphs" if side.run.graphs.launches else ""


# ---- bars ----

#: Groups of the program's calls, by prefixes of their names; the first matching group counts.
GROUPS = {
    "modules": ("mgpuModule",),
    "launches": ("mgpuLaunch",),
    "synchronization": ("mgpuStreamSynchronize", "mgpuEventSynchronize"),
    "streams": ("mgpuStream",),
    "events": ("mgpuEvent",),
    "copies": ("mgpuMemcpy", "mgpuMemset"),
    "memory": ("mgpuMem",),
    "other": ("",),
}

START = "HIP's start"  # a group for itself, in no call's time


def _bars(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Returns no bars if they would compare times that do not compare."""
    if len(sides) > 1 and tables.incomparable(side.run for side in sides):
        return []
    groups = [_groups(side.run) for side in sides]
    whole = max(sum(values.values()) for values in groups)
    bars = []
    for side, values in zip(sides, groups, strict=True):
        parts = [
            (name, name.partition("'")[0].lower(), f"{100 * ns / whole:.2f}%", duration(ns))
            for name, ns in values.items()
            if ns
        ]
        time = duration(sum(values.values())) + (f", with {START}" if values[START] else "")
        time += _without_graphs(side) + tables.summed_over(side.run)
        bars.append({"name": side.name, "time": time, "parts": parts})
    return bars if whole else []


def _groups(run: Statistics) -> dict[str, int]:
    sums = {START: run.start or 0, **dict.fromkeys(GROUPS, 0)}
    for name, counter in run.program.items():
        sums[next(group for group, begins in GROUPS.items() if name.startswith(begins))] += (
            counter.ns
        )
    return sums
