"""Builds a page for a browser from a selftest's findings, in the style of `mgpu-rt compare
--report`."""

from __future__ import annotations

from mgpu_rt._cli.report import charts
from mgpu_rt._cli.report.format import Element, code, element
from mgpu_rt._cli.report.tables import table
from mgpu_rt._selftest import summary
from mgpu_rt._selftest.fast import SIDES, by_side
from mgpu_rt._selftest.result import Result, Timing, Wrong

TITLE = "selftest – mgpu_rt"
NONE = "–"


def body(result: Result) -> list[Element]:
    """The page."""
    device = result.device
    head = element(
        "header",
        element("h1", f"{device['name']} ({device['target']})"),
        element("p", f"HIP {device['hip']}, driver {device['driver']}; {result.processor}"),
        element("p", "Right: ", element("strong", summary.verdict(result))),
    )
    sections = [
        _section("wrong", "What is wrong", [_wrong(wrong) for wrong in result.wrong]),
        _section(
            "failed", "Faults that are not the library's", [_wrong(one) for one in result.failed]
        ),
        _section("advice", "Advice", [element("p", result.advice)] if result.advice else []),
        _section("fast", "What is gained", _timings(result)),
        _section("untimed", "What has no time", [element("p", why) for why in result.untimed]),
        _section("questions", "What each question to HIP costs", _questions(result)),
        _section("checked", "What was checked", _parts(result)),
    ]
    ended = f" It ended early: {result.ended}." if result.ended else ""
    told = (
        f"Measured on {result.made} in {result.seconds:.0f} s by mgpu_rt {result.mgpu_rt}.{ended}"
    )
    return [
        head,
        element("main", *(section for section in sections if section is not None)),
        element("footer", element("p", told + ended)),
    ]


def _section(name: str, heading: str, content: list[Element]) -> Element | None:
    return element("section", element("h2", heading), *content, id=name) if content else None


def _wrong(wrong: Wrong) -> Element:
    said = [element("li", code(line)) for line in wrong.says]
    again = element("p", "Again: ", code(wrong.repeat))
    return element("div", element("h3", summary.blamed(wrong)), again, element("ul", *said))


def _timings(result: Result) -> list[Element]:
    loops = by_side(result.fast)
    if not loops:
        return []
    rows = []
    values = [timing.us for timing in result.fast]
    for (program, llvm), sides in loops.items():
        cells = [_median(sides[side]) if side in sides else NONE for side in SIDES]
        stock, library = sides["stock"].us, sides["library"].us
        chart = charts.span(
            f"{program}: {summary.number(stock)} µs, then {summary.number(library)} µs",
            stock, library, min(values), max(values),
        )  # fmt: skip
        rows.append([f"{program}, LLVM {llvm}", *cells, f"{stock / library:.1f}", chart])
    heads = ["µs an iteration", *SIDES, "gain", "stock, library"]
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in summary.ITERATION.items())
    return [
        table("Medians, with half of the spread of the middle 80 %", heads, rows),
        element("p", f"An iteration of {meanings}."),
    ]


def _median(timing: Timing) -> str:
    spread = (timing.high - timing.low) / 2 / timing.us
    return f"{summary.number(timing.us)} ± {spread:.0%}"


def _questions(result: Result) -> list[Element]:
    rows = [[name, f"{ns:.0f}"] for name, ns in result.questions.items()]
    return [table("Nanoseconds", ["question", "ns"], rows)] if rows else []


def _parts(result: Result) -> list[Element]:
    rows = [
        [part.name, *map(str, (part.checked, part.total, part.compared, part.differ))]
        for part in result.right
    ]
    return [table("Checks", ["part", "made", "of", "compared", "wrong"], rows)] if rows else []
