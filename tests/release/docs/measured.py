"""Reads figures from bench/results, and shows the figures as pages do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from bench import records
from bench.measure.calls import LOOPS
from bench.setup.build import IN_A_GRAPH
from bench.show.table import number
from tests.support.child import ROOT

FIGURES = "docs/record/figures.md"

#: Returns figures as a page shows them.
Shown = Callable[[], list[str]]
#: Formats a figure.
Format = Callable[[float], str]


# ---- results ----


@cache
def load(file: str) -> Any:
    return records.load(ROOT / file)


def newest() -> str:
    """Returns the results that the tables of figures.md show."""
    text = (ROOT / FIGURES).read_text(encoding="utf-8")
    (file,) = set(re.findall(r"<!-- table \S+ (\S+) \S+ -->", text))
    return str(file)


def values(benchmark: str, pattern: str, file: str = "") -> list[float]:
    """Returns the values of the figures whose whole name fits."""
    figures = load(file or newest())["benchmarks"][benchmark]["figures"]
    return [figure["value"] for figure in figures if re.fullmatch(pattern, figure["name"])]


def times(kind: str) -> dict[tuple[str, int, str], float]:
    """Returns the µs of each program, or MODEL/VARIANT, by release and side."""
    rows = load(newest())["benchmarks"][f"{kind}-cuda"]["data"]
    return {(_name(row), row["llvm"], row["side"]): row["us"] for row in rows if "us" in row}


def _name(row: dict[str, Any]) -> str:
    name = str(row.get("model", row.get("program")))
    return "/".join(filter(None, (name, row.get("variant"))))


def gains(kind: str, side: str, pattern: str, *llvms: int) -> Iterator[float]:
    """Yields the speedups of a side compared with LLVM's own library, for each variant of a model
    or each program whose name fits."""
    taken = times(kind)
    for (name, llvm, of), us in taken.items():
        if of == side and re.fullmatch(pattern, name) and llvm in (llvms or (19, 22)):
            yield taken[name, llvm, "llvm"] / us


# ---- how figures are shown ----


def factor(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def ratio(value: float) -> str:
    return f"{value:.2f}"


def span(found: Iterable[float], show: Format) -> list[str]:
    """Shows the least and the largest value."""
    ordered = sorted(found)
    return [show(ordered[0]), show(ordered[-1])]


def spread(benchmark: str, pattern: str, show: Format = ratio, file: str = "") -> Shown:
    """Shows the range of the figures whose whole name fits."""
    return lambda: span(values(benchmark, pattern, file), show)


def each(benchmark: str, pattern: str, show: Format = number) -> Shown:
    """Shows all figures whose whole name fits."""
    return lambda: [show(value) for value in values(benchmark, pattern)]


def speedups(*of: tuple[Any, ...]) -> Shown:
    """Shows the range of the speedups that several calls of gains yield."""
    return lambda: span((gain for one in of for gain in gains(*one)), factor)


# ---- figures that need a computation ----


def date() -> list[str]:
    return [load(newest())["date"][:10]]


def launch_by_hand() -> list[str]:
    """Shows the µs of a launch by hand: of forum, and beside runtimes in Python."""
    forum = [us for of, us in times("programs").items() if of[0] == "forum" and of[2] == "hoisted"]
    return span([*forum, *values("in_python-cuda", ". calls, by hand")], factor)


def launch_beside_graphs() -> list[str]:
    """Shows the µs of one of forum's launches without a graph."""
    of = [us for of, us in times("graphs").items() if of[0] == "forum" and of[2] == "mgpu_rt"]
    return span((us / IN_A_GRAPH for us in of), number)


def building() -> list[str]:
    """Shows how many passes a graph takes to build."""
    rows = load(newest())["benchmarks"]["graphs-cuda"]["data"]
    passes = times("graphs")
    graphs = [row for row in rows if row["side"] == "graph"]
    return span(
        (row["building_us"] / passes[_name(row), row["llvm"], "mgpu_rt"] for row in graphs), ratio
    )


def later() -> list[str]:
    """Shows how the times of LLVM's own library differ where graphs were measured."""
    before, after = times("models"), times("graphs")
    both = [of for of in after if of in before and of[2] == "llvm"]
    return span((after[of] / before[of] for of in both), ratio)


def slices() -> list[str]:
    """Shows the longest time of LLVM's own library in eight processes, as a multiple of the least
    time of all sides. This least time, in ms, follows."""
    taken = times("processes")
    most, least = max(us for of, us in taken.items() if of[2] == "llvm"), min(taken.values())
    return [factor(most / least), number(least / 1000)]


def counting() -> list[str]:
    """Shows the ns that statistics add to each call."""
    added = []
    for count in (7, 5):
        loop = rf"mgpu_rt{{}}, {LOOPS[count]} \({count} calls\), beyond hoisted"
        (plain,), (counted,) = (
            values("calls-stub", loop.format(words)) for words in ("", ", MGPU_RT_STATS on")
        )
        added.append((counted - plain) / count)
    return span(added, lambda ns: f"{ns:.0f}")
