"""Makes the documents' tables from the results, so that the tables show measured values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import records
from bench.setup.sides import GRAPH, HOISTED, LAZY, LLVM, OURS, STOCK, TITLES


def number(value: float) -> str:
    """Formats a value with three significant digits. Whole numbers, and numbers from 1000 on, have
    no decimals."""
    if not math.isfinite(value) or value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{max(2 - math.floor(math.log10(abs(value))), 0)}f}"


def programs(results: dict[str, Any], device: str, name: str = "programs") -> str:
    """Shows the microseconds per iteration of each program on one device, by side."""
    benchmark = results["benchmarks"][f"{name}-{device}"]
    taken: dict[str, dict[str, float]] = {}
    for row in benchmark["data"]:
        if "us" in row:
            taken.setdefault(_title(row), {})[row["side"]] = row["us"]
    sides = _sides(taken.values())
    of = "" if name == "programs" else " of the slowest process"
    head = f"{_measured(results, benchmark)}, µs an iteration{of}"
    rows = [(name, *(_cell(by.get(side)) for side in sides)) for name, by in taken.items()]
    return _table(head, ["program", *(TITLES[side] for side in sides)], rows)


def models(results: dict[str, Any], device: str) -> str:
    """Shows the microseconds of a forward pass of each model in each variant. The columns are the
    times before and after, and the ratio. The times with --exclusive --lazy and by hand follow if
    the run measured these times."""
    benchmark = results["benchmarks"][f"models-{device}"]
    taken: dict[tuple[str, str], dict[tuple[int, str], float]] = {}
    for row in benchmark["data"]:
        times = taken.setdefault((row["model"], row["variant"]), {})
        if "us" in row:
            times[row["llvm"], row["side"]] = row["us"]
    known = {of for times in taken.values() for of in times}
    sides = {side for _, side in known}
    base = LLVM if LLVM in sides else STOCK
    more = [side for side in (LAZY, HOISTED) if side in sides]
    releases = sorted({llvm for llvm, _ in known})
    names = [TITLES[base], TITLES[OURS], "ratio of medians", *(TITLES[side] for side in more)]
    heads = [f"LLVM {llvm}: {' | '.join(names)}" for llvm in releases]
    rows = []
    for (model, variant), times in taken.items():
        cells = []
        for llvm in releases:
            before, after, *others = (times.get((llvm, side)) for side in (base, OURS, *more))
            ratio = before / after if before and after else None
            cells += map(_cell, (before, after, ratio, *others))
        rows.append((f"{model}, {variant}", *cells))
    return _table(f"{_measured(results, benchmark)}, µs a forward pass", ["", *heads], rows)


def graphs(results: dict[str, Any], device: str) -> str:
    """Shows the microseconds of a pass of each program, as separate calls and as a graph, and the
    time to build the graph."""
    benchmark = results["benchmarks"][f"graphs-{device}"]
    taken: dict[str, dict[str, dict[str, Any]]] = {}
    for row in benchmark["data"]:
        taken.setdefault(_title(row), {})[row["side"]] = row
    sides = _sides(taken.values())
    rows = [
        (
            name,
            *(_cell(by[side]["us"] if side in by else None) for side in sides),
            number(by[GRAPH]["building_us"] / by[OURS]["us"]),
        )
        for name, by in taken.items()
    ]
    head = (
        f"{_measured(results, benchmark)}, µs per pass. The last column is the time to build our "
        "graph, as a multiple of a pass without a graph"
    )
    return _table(head, ["", *(TITLES[side] for side in sides), "building"], rows)


def in_python(results: dict[str, Any], device: str) -> str:
    """Shows the time of a launch with each runtime in Python, with seven calls and with five
    calls."""
    benchmark = results["benchmarks"][f"in_python-{device}"]
    taken: dict[str, dict[str, str]] = {}
    for figure in benchmark["figures"]:
        calls, _, name = figure["name"].partition(", ")
        if figure["unit"] == "µs" and not name.endswith("beyond native"):
            taken.setdefault(name, {})[calls] = _with_spread(figure)
    heads = list(next(iter(taken.values())))
    head = f"{_measured(results, benchmark)}, µs a launch, median and middle 80 %"
    return _table(head, ["", *heads], [(name, *by.values()) for name, by in taken.items()])


def calls(results: dict[str, Any], device: str) -> str:
    """Shows the ns that each runtime adds to a launch of seven calls and of five calls."""
    benchmark = results["benchmarks"][f"calls-{device}"]
    added: dict[str, dict[str, str]] = {}
    for figure in benchmark["figures"]:
        found = re.fullmatch(r"(.*), LLVM .* \((\d calls)\), beyond hoisted", figure["name"])
        if found:
            added.setdefault(found[1], {})[found[2]] = _with_spread(figure)
    head = f"{_on_processor(results)}, ns a launch beyond the loop by hand, median and middle 80 %"
    return _table(
        head, ["", *added["mgpu_rt"]], [(name, *by.values()) for name, by in added.items()]
    )


def threads(results: dict[str, Any], device: str) -> str:
    """Shows how many times one thread's rate several threads reach. In brackets: how much longer
    the slowest of these threads takes beside the others than by itself."""
    benchmark = results["benchmarks"][f"threads-{device}"]
    values = {figure["name"]: figure["value"] for figure in benchmark["figures"]}
    scaled: dict[str, dict[str, str]] = {}
    for name, times in values.items():
        found = re.fullmatch(r"(.*), (\d+ threads), scaling", name)
        if found:
            loop = TITLES.get(found[1], found[1])
            slower = round(values[f"{found[1]}, {found[2]}, slowdown"])
            scaled.setdefault(loop, {})[found[2]] = f"{number(times)} ({slower} %)"
    head = f"{_on_processor(results)}, times one thread's rate (slowdown of the slowest thread)"
    heads = list(next(iter(scaled.values())))
    return _table(head, ["", *heads], [(name, *by.values()) for name, by in scaled.items()])


def missed(results: dict[str, Any], device: str) -> str:
    """Shows the targets that were missed on a device. For ratios of LLVM's own library to this
    library, the last column shows the ratio of the loop by hand."""
    rows, judged = [], 0
    for benchmark in results["benchmarks"].values():
        targets = [f for f in benchmark["figures"] if "met" in f and benchmark["on"] == device]
        judged += len(targets)
        rows += [_of_target(figure, benchmark) for figure in targets if not figure["met"]]
    title = results["devices"][device]["title"]
    head = f"{title}, {results['date'][:10]}, {judged - len(rows)} of {judged} targets met; missed"
    return _table(head, ["", "median", "target", "by hand"], rows)


def _of_target(figure: dict[str, Any], benchmark: dict[str, Any]) -> tuple[str, ...]:
    sign, limit = ("≤", figure["at_most"]) if "at_most" in figure else ("≥", figure["at_least"])
    name, value = figure["name"], number(figure["value"])
    if value == number(limit):
        value = f"{figure['value']:.4g}"  # three digits hide the difference
    sides = {
        row["side"]: row["us"]
        for row in benchmark["data"]
        if "us" in row and name == f"{_title(row)}, {TITLES[LLVM]} / {TITLES[OURS]}"
    }
    by_hand = sides[LLVM] / sides[HOISTED] if HOISTED in sides else None
    return name, f"{value} {figure['unit']}".strip(), f"{sign} {limit:g}", _cell(by_hand)


def _title(row: dict[str, Any]) -> str:
    name = row.get("model") or row["program"]
    return ", ".join(filter(None, (name, row.get("variant"), f"LLVM {row['llvm']}")))


def _with_spread(figure: dict[str, Any]) -> str:
    return f"{number(figure['value'])} ({number(figure['low'])} to {number(figure['high'])})"


def _on_processor(results: dict[str, Any]) -> str:
    return f"{results['processor']}, {results['processors']} processors, {results['date'][:10]}"


def _measured(results: dict[str, Any], benchmark: dict[str, Any]) -> str:
    return f"{benchmark['device']}, {results['date'][:10]}"


def _sides(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the sides that occur, in the order of the tables."""
    known = {side for row in rows for side in row}
    return [side for side in TITLES if side in known]


def _cell(value: float | None) -> str:
    return "–" if value is None else number(value)


def _table(head: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table with right-aligned numbers below a line of text. A column's title may consist
    of several columns' titles."""
    titles = " | ".join(columns)
    dashes = "|---" + "|---:" * titles.count(" | ") + "|"
    return "\n".join(
        [
            f"{head}:",
            "",
            f"| {titles} |".replace("|  |", "| |"),
            dashes,
            *(_row(row) for row in rows),
        ]
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


#: The function that builds each kind of table. Comments in the documents name the kinds.
TABLES: dict[str, Callable[[Any, str], str]] = {
    "programs": programs,
    "processes": partial(programs, name="processes"),
    "models": models,
    "graphs": graphs,
    "in-python": in_python,
    "calls": calls,
    "threads": threads,
    "missed": missed,
}

#: The files that show tables. A table that no function here makes was measured before, and stays.
SHOWN_IN = ("docs/record/figures.md",)

#: A table in a document: <!-- table KIND FILE DEVICE --> the table <!-- end -->.
_SHOWN = re.compile(r"<!-- table (\S+) (\S+) (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


def refreshed(text: str, root: Path) -> str:
    """Returns the text with every table rebuilt from the results that the table names."""

    def table(match: re.Match[str]) -> str:
        kind, file, device = match.group(1, 2, 3)
        results = records.load(root / file)
        shown = TABLES[kind](results, device)
        return f"<!-- table {kind} {file} {device} -->\n{shown}\n<!-- end -->"

    return _SHOWN.sub(table, text)
