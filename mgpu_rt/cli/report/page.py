"""The page: its sections in their order."""

from __future__ import annotations

from collections.abc import Sequence

from mgpu_rt import __version__
from mgpu_rt.cli.report import caches, calls, course, kernels, summary
from mgpu_rt.cli.report.advice import Advice, advice
from mgpu_rt.cli.report.markup import Element, code, element
from mgpu_rt.cli.report.runs import Run, names
from mgpu_rt.cli.report.words import NONE, plural
from mgpu_rt.text import shortened


def title(runs: Sequence[Run]) -> str:
    return f"{shortened(runs[-1].program)} – mgpu_rt"


def body(runs: Sequence[Run]) -> list[Element]:
    """The page of one run, or of two: before and after."""
    sections = [
        _section("calls", "Calls", calls.section(runs)),
        _section("over-time", "Over time", course.section(runs)),
        _section("missed", "What missed, and why", caches.section(runs)),
        _section("kernels", "Kernels and copies", kernels.section(runs)),
        _section("files", "Where this is from", _sources(runs)),
    ]
    links = [
        element("a", section[0].text, href=f"#{section.get('id')}")
        for section in (_advice_section(runs), *sections)
    ]
    return [
        element("header", *summary.head(runs), element("nav", *links, aria_label="Sections")),
        element("main", *summary.time(runs), _advice_section(runs), *sections),
        element(
            "footer",
            element("p", f"Written by mgpu_rt {__version__}. “{NONE}” is what was not counted. "),
        ),
    ]


def _section(name: str, heading: str, content: Sequence[Element]) -> Element:
    return element("section", element("h2", heading), *content, id=name)


def _advice_section(runs: Sequence[Run]) -> Element:
    found = advice(runs[-1])
    if not found:
        words = "Nothing in these files calls for a change."
        return _section("advice", "Advice", [element("p", words, class_="quiet")])
    items = [_item(item) for item in found]
    return _section("advice", "Advice", [element("ul", *items, class_="advice")])


def _item(item: Advice) -> Element:
    return element(
        "li",
        element("h3", item.title),
        element("p", item.evidence),
        element(
            "p", element("strong", "Note: " if item.is_note else "Next: "), *_marked(item.step)
        ),
        class_="note" if item.is_note else "act",
    )


def _marked(text: str) -> list[Element | str]:
    """What stands between backticks is code."""
    parts = text.split("`")
    return [code(part) if number % 2 else part for number, part in enumerate(parts)]


def _sources(runs: Sequence[Run]) -> list[Element]:
    items = []
    for name, run in zip(names(runs), runs, strict=True):
        processes = [
            f"process {process.pid}"
            + (f", rank {process.rank}" if process.rank is not None else "")
            + ("" if process.by_exit else f", {process.ending}")
            for process in run.details.processes[:8]
        ]
        count = len(run.details.processes)
        rest = [f"{plural(count, 'process', 'processes')} in all"] if count > 8 else []
        words = "; ".join(map(shortened, [*run.sources, *processes, *rest]))
        lead = f"{name}: " if len(runs) == 2 else ""
        items.append(element("li", lead, words))
    return [element("ul", *items, class_="sources")]
